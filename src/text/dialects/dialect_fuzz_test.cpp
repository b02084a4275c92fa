// Random answers in every dialect: splitting the text does not change the result, written calls are
// read back, and no part of a marker is left in the content.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/testing/sanitized.h"
#include "text/dialects/call_text.h"
#include "text/dialects/output_parser.h"
#include "text/testing/shown_parts.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr int kCases = kSanitized ? 300 : 3000;  // per dialect and test

struct Style {
  const ToolDialect* tools;
  const ReasoningDialect* reasoning;
};

class DialectFuzz : public testing::TestWithParam<Style> {
 protected:
  OutputParserOptions options() const {
    OutputParserOptions made{
        .dialect = {.tools = GetParam().tools, .reasoning = GetParam().reasoning}};
    if (GetParam().tools == &kHarmony) made.dialect.channels = &kHarmonyChannels;
    for (const char* name : {"weather", "get-time", "a.b_C"}) {
      made.tools.push_back({name, ordered_json::parse(R"({"type": "object", "properties": {
             "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
             "more": {"type": "object"}, "list": {"type": "array"}, "maybe": {"type": "null"}}})")});
    }
    return made;
  }

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  template <typename T>
  const T& any(const std::vector<T>& of) {
    return of[static_cast<size_t>(below(static_cast<int>(of.size())))];
  }

  std::string words(bool of_json) {
    static const std::vector<std::string> kPlain = {"a",  "Hello", " ",   "\n", "é", "x < y",
                                                    "{",  "}",     "[1]", ":",  ",", "\"",
                                                    "\\", "日本",  "|",   "```"};
    static const std::vector<std::string> kTame = {"a", "Hello", " there", ".",
                                                   "é", " 日本", " 12"};
    std::string text;
    const std::vector<std::string>& from = of_json ? kPlain : kTame;
    for (int i = below(8); i >= 0; --i) text += any(from);
    return text;
  }

  ordered_json value(const std::string& type, int depth) {
    if (type == "text") return words(true);
    if (type == "count") return below(2000) - 1000;
    if (type == "on") return below(2) == 0;
    if (type == "maybe") return nullptr;
    ordered_json made = type == "list" ? ordered_json::array() : ordered_json::object();
    if (depth == 0) return made;
    static const std::vector<std::string> kTypes = {"text", "count", "on", "maybe", "more", "list"};
    for (int i = below(4); i > 0; --i) {
      const ordered_json item = value(any(kTypes), depth - 1);
      if (type == "list") {
        made.push_back(item);
      } else {
        made[fmt::format("k{}", i)] = item;
      }
    }
    return made;
  }

  ToolCall call() {
    ToolCall made{any<std::string>({"weather", "get-time", "a.b_C"}), ordered_json::object()};
    for (const char* key : {"text", "count", "on", "more", "list", "maybe"}) {
      if (below(2) == 0) made.arguments[key] = value(key, 3);
    }
    return made;
  }

  // The answer as a model would write it.
  std::string answer(const std::string& reasoning, const std::string& content,
                     const std::vector<ToolCall>& calls) {
    const Style& style = GetParam();
    std::string text;
    if (style.tools == &kHarmony) {
      if (!reasoning.empty()) text += "<|channel|>analysis<|message|>" + reasoning + "<|end|>";
      if (!reasoning.empty() && (!content.empty() || !calls.empty())) text += "<|start|>assistant";
      if (!content.empty()) text += "<|channel|>commentary<|message|>" + content + "<|end|>";
      if (!content.empty() && !calls.empty()) text += "<|start|>assistant";
      return text + (calls.empty() ? "" : call_text(*style.tools, calls));
    }
    if (style.reasoning != nullptr && !reasoning.empty())
      text = std::string(style.reasoning->open) + "\n" + reasoning + "\n" +
             std::string(style.reasoning->close) + "\n\n";
    text += content;
    if (!calls.empty()) text += call_text(*style.tools, calls);
    return text;
  }

  std::vector<OutputPart> whole(const OutputParserOptions& options, const std::string& text) {
    OutputParser parser(options);
    std::vector<OutputPart> parts;
    append_parts(parts, parser.push(text));
    append_parts(parts, parser.finish());
    return parts;
  }

  std::vector<OutputPart> cut(const OutputParserOptions& options, const std::string& text) {
    OutputParser parser(options);
    std::vector<OutputPart> parts;
    const int longest = 1 + below(30);
    for (size_t at = 0; at < text.size();) {
      const auto size = static_cast<size_t>(1 + below(longest));
      append_parts(parts, parser.push(std::string_view(text).substr(at, size)));
      at += size;
    }
    append_parts(parts, parser.finish());
    return parts;
  }

  std::mt19937 random_{20260};
};

TEST_P(DialectFuzz, WrittenCallsAreReadBack) {
  const OutputParserOptions options = this->options();
  for (int i = 0; i < kCases; ++i) {
    const bool bare = GetParam().tools->bare;  // its calls come first
    const std::string reasoning =
        below(2) == 0 && GetParam().reasoning != nullptr ? fmt::format("r{}.", words(false)) : "";
    const std::string content = below(2) == 0 && !bare ? fmt::format("c{}.", words(false)) : "";
    std::vector<ToolCall> calls;
    for (int n = below(4); n > 0; --n) calls.push_back(call());
    const std::string text = answer(reasoning, content, calls);
    const std::vector<OutputPart> parts = cut(options, text);
    std::string got_reasoning;
    std::string got_content;
    std::vector<ToolCall> got;
    for (const OutputPart& part : parts) {
      if (part.kind == PartKind::kReasoning) got_reasoning += part.text;
      if (part.kind == PartKind::kContent) got_content += part.text;
      if (part.kind == PartKind::kToolCall) got.push_back({part.name, nullptr});
      if (part.kind == PartKind::kToolArguments) {
        ASSERT_EQ(part.call, static_cast<int>(got.size()) - 1);
        got.back().arguments = ordered_json::parse(part.text, nullptr, false);
      }
    }
    ASSERT_EQ(got_reasoning, reasoning) << text;
    ASSERT_EQ(got_content, content) << text;
    ASSERT_EQ(got.size(), calls.size()) << text;
    for (size_t n = 0; n < calls.size(); ++n) {
      ASSERT_EQ(got[n].name, calls[n].name) << text;
      ASSERT_EQ(got[n].arguments, calls[n].arguments) << text;
    }
  }
}

TEST_P(DialectFuzz, SplittingMalformedTextDoesNotMatter) {
  OutputParserOptions options = this->options();
  std::vector<std::string> scraps = {
      "<",  ">",    "{",    "}",  "\"name\"",      ":",       "\"time\"", "[",
      "]",  ",",    " ",    "\n", "call:",         "\\",      "weather",  "é",
      "to", "json", "text", "1",  "\"arguments\"", "function"};
  for (const std::string_view marker : options.dialect.markers()) {
    scraps.emplace_back(marker);
    scraps.emplace_back(marker.substr(0, marker.size() / 2));
  }
  for (int i = 0; i < kCases; ++i) {
    std::string text;
    const auto scrap = [&] {
      for (int n = below(12); n > 0; --n) text += any(scraps);
    };
    scrap();
    if (below(2) == 0) {  // a valid answer with a piece removed or inserted
      std::string good = answer("r", "c", {call(), call()});
      const auto at = static_cast<size_t>(below(static_cast<int>(good.size())));
      if (below(2) == 0) {
        good.erase(at, static_cast<size_t>(below(20)));
      } else {
        good.insert(at, any(scraps));
      }
      if (below(3) == 0) good.resize(at);
      text += good;
    }
    scrap();
    options.starts_in_reasoning = below(4) == 0;
    options.max_calls = below(4) == 0 ? 1 : 0;
    ASSERT_EQ(shown_parts(cut(options, text)), shown_parts(whole(options, text))) << text;
  }
}

// Text that ends before it is a call is returned completely.
TEST_P(DialectFuzz, NothingIsLost) {
  const OutputParserOptions options = this->options();
  for (int i = 0; i < kCases; ++i) {
    const ToolCall one = call();
    std::string written = call_text(*GetParam().tools, std::vector<ToolCall>{one});
    const size_t name = written.find(one.name);
    written.resize(static_cast<size_t>(below(static_cast<int>(name + one.name.size()))));
    std::string text;
    if (below(2) == 0) text.append("c").append(words(false));
    text += written;
    const std::string more = below(2) == 0 ? "" : " \xC3\xA9 x";
    std::string got;
    for (const OutputPart& part : cut(options, text + more)) {
      ASSERT_EQ(part.kind, PartKind::kContent) << text;
      got += part.text;
    }
    ASSERT_EQ(got, text + more);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dialects, DialectFuzz,
    testing::Values(Style{&kHermes, &kQwen3Reasoning}, Style{&kQwenXml, &kQwen3Reasoning},
                    Style{&kLlama3, nullptr}, Style{&kHarmony, &kHarmonyReasoning},
                    Style{&kDeepSeekV3, nullptr}, Style{&kDeepSeekV31, &kDeepSeekR1Reasoning},
                    Style{&kMistral, &kMistralReasoning}, Style{&kGemma4Tools, &kGemma4Reasoning},
                    Style{&kFunctionGemma, nullptr}),
    [](const auto& style) { return std::string(style.param.tools->name); });

}  // namespace
}  // namespace octavo
