// schema_grammar.h - converts JSON schemas to grammars for argument forms other than JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/dialects/lark_writer.h"

namespace octavo {

// The grammar of one tool's arguments. All text it accepts matches the schema, but it may accept
// less: keys follow the schema's order and keys not named in it are excluded. Throws
// RequestError(400, "tools") for keywords it cannot enforce.
class SchemaGrammar {
 public:
  SchemaGrammar(LarkWriter& writer, const std::string& tool, const nlohmann::ordered_json& schema)
      : writer_(writer), tool_(tool), root_(schema) {}

  // <parameter=KEY>\nVALUE\n</parameter>... </function>
  std::string xml_parameters();
  // {key:value}, strings between `quote`s.
  std::string bare_object(std::string_view quote);

 private:
  using Json = nlohmann::ordered_json;

  std::string xml_value(const Json& schema);
  // The end of a string's text: `lead`, then `marker`.
  struct TextEnd {
    std::string_view lead;
    std::string_view marker;
  };
  std::string raw_string(const Json& schema, TextEnd end, int depth);
  std::string bare_value(const Json& schema, std::string_view quote);
  std::string bare_of_type(const std::string& type, const Json& schema, std::string_view quote);
  std::string bare_members(const Json& schema, std::string_view quote);
  std::string bare_list(const Json& schema, std::string_view quote);
  std::string bare_tuple(const Json& schema, std::string_view quote);
  std::string bare_reference(const Json& reference, std::string_view quote);
  std::string string_pattern(const Json& schema) const;
  const Json& resolved(const Json& schema) const;
  bool is_required(const Json& schema, const std::string& key) const;
  Json joined(const Json& schema) const;
  void check_object(const Json& schema) const;
  [[noreturn]] void refuse(const std::string& why) const;

  LarkWriter& writer_;
  const std::string& tool_;
  const Json& root_;
  std::map<std::string, std::string> references_;  // $ref to rule name
};

}  // namespace octavo
