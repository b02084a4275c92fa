#include "api/openai/structured_output.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>

#include "api/fields/field_kinds.h"
#include "text/gbnf.h"

namespace octavo::api {
namespace {

using Kind = GrammarSource::Kind;

void expect_members(const Json& value, const std::string& field,
                    std::initializer_list<std::string_view> known) {
  if (!value.is_object()) refuse(field, "must be an object");
  for (const auto& [name, member] : value.items()) {
    if (!member.is_null() && std::ranges::find(known, name) == known.end())
      refuse(field + "." + name, "is not a known member");
  }
}

bool has(const Json& value, const char* name) {
  return value.contains(name) && !value.at(name).is_null();
}

std::string schema_text(const Json& schema, const std::string& field) {
  if (!schema.is_object() && !schema.is_boolean()) refuse(field, "must be a JSON schema");
  return dump(schema);
}

// vLLM also accepts a schema as text.
std::string schema_or_its_text(const Json& value, const std::string& field) {
  return value.is_string() ? to_string(value, field, kMaxGrammarBytes) : schema_text(value, field);
}

std::string choices_text(const Json& value, const std::string& field) {
  if (!value.is_array() || value.empty() || !std::ranges::all_of(value, &Json::is_string))
    refuse(field, "must be a list of strings");
  return dump(value);
}

std::optional<StructuredOutput> json_object_or_none(const Json& value, const std::string& field) {
  if (!to_bool(value, field)) return std::nullopt;
  return StructuredOutput{{.kind = Kind::kJsonObject}, field};
}

std::string lark_of(const std::string& gbnf, const std::string& field) {
  try {
    return lark_from_gbnf(gbnf);
  } catch (const std::invalid_argument& error) {
    refuse(field, error.what());
  }
}

std::optional<StructuredOutput> read_form(const std::string& name, const Json& value,
                                          const std::string& field) {
  if (name == "json") return StructuredOutput{{.text = schema_or_its_text(value, field)}, field};
  if (name == "json_object") return json_object_or_none(value, field);
  if (name == "choice")
    return StructuredOutput{{.kind = Kind::kChoice, .text = choices_text(value, field)}, field};
  const Kind kind = name == "regex" ? Kind::kRegex : Kind::kLark;
  std::string text = to_string(value, field, kMaxGrammarBytes);
  if (text.empty()) refuse(field, "is empty");
  if (kind == Kind::kLark && is_gbnf(text)) text = lark_of(text, field);
  return StructuredOutput{{.kind = kind, .text = std::move(text)}, field};
}

Json closed_object(Json properties, Json required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json constant(const char* value) { return {{"const", value}}; }

}  // namespace

Json response_format_schema() {
  const Json schema = closed_object({{"name", string_schema(kMaxNameBytes)},
                                     {"description", {{"type", "string"}}},
                                     {"schema", {{"type", "object"}}},
                                     {"strict", {{"type", {"boolean", "null"}}}}},
                                    {"name", "schema"});
  const auto only_type = [](const char* type) {
    return closed_object({{"type", constant(type)}}, Json::array({"type"}));
  };
  return {{"anyOf",
           {only_type("text"), only_type("json_object"),
            closed_object({{"type", constant("json_schema")}, {"json_schema", schema}},
                          {"type", "json_schema"})}}};
}

std::optional<StructuredOutput> read_response_format(const Json& value) {
  const std::string field = "response_format";
  expect_members(value, field, {"type", "json_schema"});
  const std::string type =
      has(value, "type") ? to_string(value.at("type"), field + ".type", 64) : "";
  if (type != "json_schema" && has(value, "json_schema"))
    refuse(field + ".json_schema", "requires the type json_schema");
  if (type == "text") return std::nullopt;
  if (type == "json_object") return StructuredOutput{{.kind = Kind::kJsonObject}, field};
  if (type != "json_schema") refuse(field + ".type", "must be text, json_object or json_schema");
  if (!has(value, "json_schema")) refuse(field + ".json_schema", "is missing");
  const Json& form = value.at("json_schema");
  expect_members(form, field + ".json_schema", {"name", "description", "schema", "strict"});
  if (has(form, "name")) to_string(form.at("name"), field + ".json_schema.name", kMaxNameBytes);
  if (has(form, "strict")) to_bool(form.at("strict"), field + ".json_schema.strict");
  const std::string schema = field + ".json_schema.schema";
  if (!has(form, "schema")) refuse(schema, "is missing");
  return StructuredOutput{{.text = schema_text(form.at("schema"), schema)}, schema};
}

Json structured_outputs_schema() {
  const Json text = filled_string_schema(kMaxGrammarBytes);
  const Json forms = {
      {"json", {{"type", {"object", "string"}}}},
      {"regex", text},
      {"choice", {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}},
      {"grammar", text},
      {"json_object", boolean_schema()}};
  Json alternatives = Json::array();
  for (const auto& [name, form] : forms.items()) {
    alternatives.push_back(closed_object({{name, form},
                                          {"disable_any_whitespace", boolean_schema()},
                                          {"whitespace_pattern", string_schema(kMaxNameBytes)}},
                                         Json::array({name})));
  }
  return {{"anyOf", std::move(alternatives)}};
}

std::optional<StructuredOutput> read_structured_outputs(const Json& value) {
  const std::string field = "structured_outputs";
  expect_members(value, field,
                 {"json", "regex", "choice", "grammar", "json_object", "disable_any_whitespace",
                  "whitespace_pattern", "disable_fallback", "disable_additional_properties"});
  std::optional<StructuredOutput> output;
  int forms = 0;
  for (const char* name : {"json", "regex", "choice", "grammar", "json_object"}) {
    if (!has(value, name)) continue;
    ++forms;
    output = read_form(name, value.at(name), field + "." + name);
  }
  if (forms != 1)
    refuse(field, "must have exactly one of json, regex, choice, grammar and json_object");
  // Either value is accepted: there is only one backend, so nothing falls back.
  if (has(value, "disable_fallback"))
    to_bool(value.at("disable_fallback"), field + ".disable_fallback");
  if (has(value, "disable_additional_properties") &&
      to_bool(value.at("disable_additional_properties"), field + ".disable_additional_properties"))
    refuse(field + ".disable_additional_properties",
           "is not supported; write additionalProperties: false into the schema");
  if (!output) return output;
  GrammarSource& grammar = output->grammar;
  if (has(value, "disable_any_whitespace"))
    grammar.no_whitespace =
        to_bool(value.at("disable_any_whitespace"), field + ".disable_any_whitespace");
  if (has(value, "whitespace_pattern"))
    grammar.whitespace =
        to_string(value.at("whitespace_pattern"), field + ".whitespace_pattern", kMaxNameBytes);
  const bool is_json = grammar.kind == Kind::kJsonSchema || grammar.kind == Kind::kJsonObject;
  if (!is_json && (grammar.no_whitespace || !grammar.whitespace.empty()))
    refuse(field, "whitespace options apply only to json and json_object");
  return output;
}

}  // namespace octavo::api
