// lark_writer.h - rules of a Lark grammar, as llguidance reads it.
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

  // `markers`: those of them that `special` knows are written as tokens.
  LarkWriter(const std::vector<std::string_view>& markers, const Special& special);

  bool is_token(std::string_view marker) const;

  // Expressions, to be put into rules.
  std::string literal(std::string_view text) const;
  // JSON that fits `schema`, whose references point into `root`.
  std::string json(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& root);
  // Text up to and with `end`, which is not in it, behind `lead`; `pattern` is a terminal's
  // expression, or empty for any text.
  std::string text_until(std::string_view pattern, std::string_view lead, std::string_view end);

  // A rule of its own; its name.
  std::string rule(std::string_view expression);
  // Names a rule that is written later.
  std::string reserve();
  void define(const std::string& name, std::string_view expression);

  // All of it; `start` is the expression an answer is.
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

// A literal of Lark, and a regex between slashes.
std::string lark_string(std::string_view text);
std::string lark_regex(std::string_view regex);
// A regex for the text itself.
std::string regex_escaped(std::string_view text);

}  // namespace octavo
