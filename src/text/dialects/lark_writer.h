// lark_writer.h - writes the rules of a Lark grammar for llguidance.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"

namespace octavo {

class LarkWriter {
 public:
  using Special = std::function<std::optional<TokenId>(std::string_view)>;

  // Markers for which `special` returns an id are written as tokens.
  LarkWriter(const std::vector<std::string_view>& markers, const Special& special);

  bool is_token(std::string_view marker) const;

  // Expressions for use in rules.
  std::string literal(std::string_view text) const;
  // JSON that matches `schema`, whose references point into `root`.
  std::string json(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& root);
  // Text that does not contain `end`, followed by `lead` and `end`. `pattern` is a terminal
  // expression for the text, or empty for any text.
  std::string text_until(std::string_view pattern, std::string_view lead, std::string_view end);

  // Adds a rule and returns its name.
  std::string rule(std::string_view expression);
  // Returns the name of a rule to be defined later.
  std::string reserve();
  void define(const std::string& name, std::string_view expression);

  // The complete grammar; `start` is the expression for a whole answer.
  std::string grammar(std::string_view start) const;

 private:
  struct Token {
    std::string_view text;
    TokenId id;
  };

  std::vector<Token> tokens_;
  std::string rules_;
  int made_ = 0;
};

// A Lark string literal, and a regex between slashes.
std::string lark_string(std::string_view text);
std::string lark_regex(std::string_view regex);
// A regex that matches exactly `text`.
std::string regex_escaped(std::string_view text);

}  // namespace octavo
