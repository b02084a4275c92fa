#include "text/dialects/lark_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/dialects/call_sink.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// Bounded, because a constrained model may otherwise write whitespace endlessly.
constexpr const char* kWhitespace = R"( |\r?\n[ \t]{0,32})";

}  // namespace

std::string lark_string(std::string_view text) { return json_quoted(text); }

std::string lark_regex(std::string_view regex) {
  std::string text = "/";
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\' && i + 1 < regex.size()) {
      text += regex[i++];
    } else if (regex[i] == '/') {
      text += '\\';
    } else if (regex[i] == '\n') {
      text += "\\n";
      continue;
    }
    text += regex[i];
  }
  return text + '/';
}

std::string regex_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view(R"(\.+*?()|[]{}^$#&-~/)").find(c) != std::string_view::npos)
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

LarkWriter::LarkWriter(const std::vector<std::string_view>& markers, const Special& special) {
  if (!special) return;
  for (const std::string_view marker : markers) {
    if (const auto id = special(marker)) tokens_.push_back({marker, *id});
  }
}

bool LarkWriter::is_token(std::string_view marker) const {
  return std::ranges::count(tokens_, marker, &Token::text) > 0;
}

std::string LarkWriter::literal(std::string_view text) const {
  std::string expression;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) expression += lark_string(plain) + ' ';
    plain.clear();
  };
  while (!text.empty()) {
    const Token* found = nullptr;
    for (const Token& token : tokens_) {
      if (text.starts_with(token.text)) found = &token;
    }
    if (found == nullptr) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    flush();
    expression += fmt::format("<[{}]> ", found->id);
    text.remove_prefix(found->text.size());
  }
  flush();
  return expression;
}

std::string LarkWriter::json(const ordered_json& schema, const ordered_json& root) {
  ordered_json own = schema.is_object() ? schema : ordered_json::object();
  for (const char* key : {"$defs", "definitions"}) {
    if (root.contains(key)) own[key] = root[key];
  }
  own["x-guidance"] = {{"whitespace_pattern", kWhitespace}};
  return rule("%json " + own.dump(-1, ' ', true, ordered_json::error_handler_t::replace)) + ' ';
}

std::string LarkWriter::text_until(std::string_view pattern, std::string_view lead,
                                   std::string_view end) {
  for (const Token& token : tokens_) {
    // `end` is a special token, which ordinary text cannot contain.
    if (token.text != end) continue;
    const std::string text = pattern.empty() ? "/(?s:.*)/" : std::string(pattern);
    const std::string name = fmt::format("T{}", made_++);
    rules_ += fmt::format("{}: {}\n", name, text);
    return fmt::format("{} {}<[{}]> ", name, literal(lead), token.id);
  }
  const std::string any_end = lark_regex("(?s:.*)" + regex_escaped(end));
  const std::string name = fmt::format("T{}", made_++);
  if (pattern.empty()) {
    rules_ += fmt::format("{}: {}\n", name, any_end);
  } else {
    const std::string inside = lark_regex("(?s:.*)" + regex_escaped(end) + "(?s:.*)");
    const std::string text = fmt::format("T{}", made_++);
    rules_ += fmt::format("{}: ({}) & ~{}\n", text, pattern, inside);
    rules_ +=
        fmt::format("{}: {} {}\n", name, text, lark_string(std::string(lead) + std::string(end)));
  }
  const std::string lazy = reserve();
  rules_ += fmt::format("{}[lazy]: {}\n", lazy, name);
  return lazy + ' ';
}

std::string LarkWriter::reserve() { return fmt::format("r{}", made_++); }

void LarkWriter::define(const std::string& name, std::string_view expression) {
  rules_ += fmt::format("{}: {}\n", name, expression);
}

std::string LarkWriter::rule(std::string_view expression) {
  const std::string name = reserve();
  define(name, expression);
  return name;
}

std::string LarkWriter::grammar(std::string_view start) const {
  return fmt::format("start: {}\n{}", start, rules_);
}

}  // namespace octavo
