#include "text/dialects/tool_grammar.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "text/dialects/call_text.h"
#include "text/dialects/output_parser.h"
#include "text/grammar.h"
#include "text/testing/shown_parts.h"
#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr TokenId kEnd = 258;

const std::vector<Tool> kTools = {
    {"weather", ordered_json::parse(R"({"type": "object", "properties": {
        "city": {"type": "string", "maxLength": 6}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": ["C", "F"]}, "at": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
        "required": ["city", "days"], "additionalProperties": false})")},
    {"time",
     ordered_json::parse(R"({"type": "object", "properties": {"zone": {"$ref": "#/$defs/zone"}},
        "$defs": {"zone": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "additionalProperties": false})")}};

class ToolGrammar : public testing::TestWithParam<const ToolDialect*> {
 protected:
  ToolGrammar()
      : tokenizer_(tokenizer_of(byte_level_vocab())),
        vocabulary_(*tokenizer_, 260, std::vector<TokenId>{kEnd}) {}

  std::unique_ptr<const Grammar> compile(const ToolGrammarOptions& options = {}) {
    return vocabulary_.compile(
        {.kind = GrammarSource::Kind::kLark, .text = tool_grammar(*GetParam(), kTools, options)},
        "tools");
  }

  // A random answer of at most `longest` bytes; empty if it did not end.
  std::string walk(const Grammar& grammar, std::mt19937& random, size_t longest) {
    const auto matcher = grammar.begin();
    std::string text;
    while (text.size() < longest) {
      const std::vector<uint32_t> mask = matcher->mask();
      std::vector<TokenId> plain, others;
      for (TokenId token = 0; token < 260; ++token) {
        const auto bit = static_cast<uint32_t>(token);
        if ((mask[bit / 32] >> (bit % 32) & 1) == 0) continue;
        const bool is_plain = (token >= 32 && token < 127) || token == '\n' || token == kEnd;
        (is_plain ? plain : others).push_back(token);
      }
      // Random bytes outside ASCII rarely form characters, except those of a marker.
      const auto& allowed = plain.empty() ? others : plain;
      if (allowed.empty()) return "";
      const TokenId token = allowed[random() % allowed.size()];
      if (!matcher->accept(token)) ADD_FAILURE() << "a token allowed by the mask was refused";
      if (token == kEnd) return text;
      text += static_cast<char>(token);
    }
    return "";
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  GrammarVocabulary vocabulary_;
};

TEST_P(ToolGrammar, AcceptsCallsWrittenByTheDialect) {
  const auto grammar = compile();
  const std::vector<ToolCall> calls = {
      {"weather", {{"city", "Rome"}, {"days", 3}, {"unit", "C"}, {"at", {true, false}}}},
      {"time", ordered_json::object()},
      {"time", {{"zone", "CET"}}}};
  const std::string text = call_text(*GetParam(), calls);
  const auto matcher = grammar->begin();
  for (size_t i = 0; i < text.size(); ++i) {
    const auto token = static_cast<TokenId>(static_cast<unsigned char>(text[i]));
    ASSERT_TRUE(matcher->accept(token)) << text.substr(0, i) << " then " << text[i];
  }
  EXPECT_TRUE(matcher->accept(kEnd)) << text;
}

TEST_P(ToolGrammar, GeneratedTextParsesAsCalls) {
  const auto grammar = compile({.max_calls = 2});
  OutputParserOptions options{.dialect = {.tools = GetParam()}, .tools = kTools};
  if (GetParam() == &kHarmony) options.dialect.channels = &kHarmonyChannels;
  std::mt19937 random(7);
  int ended = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string text = walk(*grammar, random, 1500);
    if (text.empty()) continue;
    ++ended;
    OutputParser parser(options);
    std::vector<OutputPart> parts = parser.push(text);
    append_parts(parts, parser.finish());
    ASSERT_GT(parser.calls(), 0) << text;
    for (const OutputPart& part : parts) {
      ASSERT_NE(part.kind, PartKind::kContent) << text;
      if (part.kind != PartKind::kToolArguments) continue;
      const ordered_json arguments = ordered_json::parse(part.text, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << text;
      if (arguments.contains("zone")) {
        ASSERT_EQ(arguments["zone"].get<std::string>().size(), 3u) << text;
      }
      if (arguments.contains("days")) {
        ASSERT_TRUE(arguments["days"].is_number_integer()) << text;
        ASSERT_LE(arguments["city"].get<std::string>().size(), 6u) << text;
      }
    }
  }
  EXPECT_GT(ended, 30);
}

INSTANTIATE_TEST_SUITE_P(Dialects, ToolGrammar,
                         testing::Values(&kHermes, &kQwenXml, &kLlama3, &kHarmony, &kDeepSeekV3,
                                         &kDeepSeekV31, &kMistral, &kGemma4Tools, &kFunctionGemma),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

TEST(ToolGrammarText, SpecialTokensAreNamedByTheirIds) {
  const auto special = [](std::string_view marker) -> std::optional<TokenId> {
    if (marker == "[TOOL_CALLS]") return 5;
    if (marker == "[ARGS]") return 6;
    return std::nullopt;
  };
  const std::string grammar = tool_grammar(kMistral, kTools, {.max_calls = 1, .special = special});
  EXPECT_NE(grammar.find("<[5]> \"weather\" <[6]> "), std::string::npos) << grammar;
  EXPECT_EQ(grammar.find("TOOL_CALLS"), std::string::npos);
}

TEST(ToolGrammarText, UnenforceableSchemasAreRefused) {
  const std::vector<Tool> tools = {
      {"f", ordered_json::parse(R"({"type": "object", "patternProperties": {"a": {}}})")}};
  EXPECT_THROW(tool_grammar(kGemma4Tools, tools, {}), RequestError);
  EXPECT_THROW(tool_grammar(kQwenXml, tools, {}), RequestError);
}

}  // namespace
}  // namespace octavo
