// schema_grammar.h - JSON schemas as grammars of forms that are not JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/dialects/lark_writer.h"

namespace octavo {

// Of one tool. What it makes always fits the schema; it need not make all that fits: keys stand in
// the schema's order, and none that the schema does not name. Throws RequestError(400, "tools")
// for keywords it cannot hold to.
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
  // A string's text up to and with the marker that ends it, behind `lead`.
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
  std::map<std::string, std::string> references_;  // to rules
};

}  // namespace octavo
