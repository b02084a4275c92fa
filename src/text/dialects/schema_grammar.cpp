#include "text/dialects/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/dialects/argument_types.h"
#include "text/dialects/call_text.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kValueEnd = "</parameter>";
constexpr int kDepth = 32;
// Keywords that exclude values or apply to keys the schema does not name.
constexpr const char* kUnenforceable[] = {"oneOf",
                                          "not",
                                          "if",
                                          "patternProperties",
                                          "propertyNames",
                                          "minProperties",
                                          "maxProperties",
                                          "uniqueItems",
                                          "contains",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "unevaluatedProperties",
                                          "$dynamicRef"};

// Formats that validators check; others are treated as annotations.
struct Format {
  std::string_view name;
  std::string_view regex;
};
constexpr Format kFormats[] = {
    {"date", "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"},
    {"time", "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"},
    {"date-time",
     "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"},
    {"ipv4",
     "((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}"
     "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"email", "[a-z0-9.]{1,32}@[a-z0-9]{1,32}[.][a-z]{2,8}"},
};

int count_of(const ordered_json& schema, const char* key, int otherwise) {
  const auto found = schema.find(key);
  return found != schema.end() && found->is_number_integer() ? found->get<int>() : otherwise;
}

}  // namespace

void SchemaGrammar::refuse(const std::string& why) const {
  throw RequestError(
      400, "tools",
      fmt::format("`{}` cannot be enforced in this model's tool-call format: {}", tool_, why));
}

const ordered_json& SchemaGrammar::resolved(const Json& schema) const {
  const Json* at = &schema;
  for (int depth = 0; depth < kDepth; ++depth) {
    if (!at->is_object() || !at->contains("$ref")) return *at;
    at = find_reference(root_, (*at)["$ref"]);
    if (at == nullptr) refuse("a $ref in its parameters has no target");
  }
  refuse("a $ref in its parameters refers to itself");
}

void SchemaGrammar::check_object(const Json& schema) const {
  for (const char* key : kUnenforceable) {
    if (schema.contains(key)) refuse(fmt::format("its parameters use {}", key));
  }
  if (schema.contains("allOf")) refuse("its parameters use allOf");
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return;
  for (const Json& key : *required) {
    const bool named = schema.contains("properties") && key.is_string() &&
                       schema["properties"].contains(key.get<std::string>());
    if (!named) refuse("its parameters require a key that has no schema");
  }
}

bool SchemaGrammar::is_required(const Json& schema, const std::string& key) const {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::ranges::any_of(*required, [&](const Json& name) { return name == key; });
}

// A terminal expression for the text of a string; empty if any text is allowed.
std::string SchemaGrammar::string_pattern(const Json& schema) const {
  std::string expression;
  const int low = count_of(schema, "minLength", 0);
  const int high = count_of(schema, "maxLength", -1);
  if (low > 0 || high >= 0) {
    const std::string most = high >= 0 ? std::to_string(high) : "";
    expression = lark_regex(fmt::format("(?s:.{{{},{}}})", low, most));
  }
  const auto both = [&](const std::string& regex) {
    if (!expression.empty()) expression += " & ";
    expression += lark_regex(regex);
  };
  for (const Format& format : kFormats) {
    if (schema.contains("format") && schema["format"] == format.name)
      both(std::string(format.regex));
  }
  if (!schema.contains("pattern") || !schema["pattern"].is_string()) return expression;
  std::string pattern = schema["pattern"].get<std::string>();
  const bool from_start = pattern.starts_with('^');
  const bool to_end = pattern.ends_with('$') && !pattern.ends_with("\\$");
  if ((from_start || to_end) && pattern.find('|') != std::string::npos &&
      pattern.find('(') == std::string::npos)
    refuse("a pattern has anchors in its alternatives");
  if (to_end) pattern.pop_back();
  if (from_start) pattern.erase(0, 1);
  both(fmt::format("{}(?:{}){}", from_start ? "" : "(?s:.*)", pattern, to_end ? "" : "(?s:.*)"));
  return expression;
}

std::string SchemaGrammar::raw_string(const Json& schema, TextEnd end, int depth) {
  if (depth > kDepth) refuse("its parameters are recursive");
  const Json& own = resolved(schema);
  std::vector<std::string> options;
  if (own.contains("const") || own.contains("enum")) {
    const Json values = own.contains("const") ? Json::array({own["const"]}) : own["enum"];
    for (const Json& value : values) {
      if (!value.is_string()) continue;
      const auto& text = value.get_ref<const std::string&>();
      if (text.find(end.marker) == std::string::npos)
        options.push_back(writer_.literal(fmt::format("{}{}{}", text, end.lead, end.marker)));
    }
    if (options.empty()) refuse("none of its enum values can be written");
  } else if (own.contains("anyOf")) {
    for (const Json& option : own["anyOf"]) options.push_back(raw_string(option, end, depth + 1));
  } else {
    check_object(own);
    options.push_back(writer_.text_until(string_pattern(own), end.lead, end.marker));
  }
  std::string all;
  for (const std::string& option : options) all += (all.empty() ? "" : "| ") + option;
  return writer_.rule(all) + ' ';
}

std::string SchemaGrammar::xml_value(const Json& schema) {
  // If both strings and other types are allowed, strings are written as JSON, so that their quotes
  // identify them.
  if (type_of(schema, root_) != ValueType::kString)
    return writer_.json(schema, root_) + writer_.literal("\n</parameter>");
  return raw_string(schema, {.lead = "\n", .marker = kValueEnd}, 0);
}

std::string SchemaGrammar::xml_parameters() {
  check_object(root_);
  std::string expression;
  const auto properties = root_.find("properties");
  if (properties != root_.end() && properties->is_object()) {
    for (const auto& [key, schema] : properties->items()) {
      if (key.empty() || key.find_first_of("<>\n") != std::string::npos)
        refuse(fmt::format("the key `{}` cannot be written", key));
      const std::string parameter =
          writer_.rule(writer_.literal("\n<parameter=" + key + ">\n") + xml_value(schema));
      expression += parameter + (is_required(root_, key) ? " " : "? ");
    }
  }
  return expression + writer_.literal("\n</function>");
}

std::string SchemaGrammar::bare_reference(const Json& reference, std::string_view quote) {
  const Json* target = find_reference(root_, reference);
  if (target == nullptr) refuse("a $ref in its parameters has no target");
  const std::string name = reference.get<std::string>();
  if (const auto known = references_.find(name); known != references_.end())
    return known->second + ' ';
  const std::string rule = references_[name] = writer_.reserve();
  writer_.define(rule, bare_value(*target, quote));
  return rule + ' ';
}

// Merges the schemas of allOf; a keyword must not have different values in two of them.
nlohmann::ordered_json SchemaGrammar::joined(const Json& schema) const {
  Json all = schema;
  all.erase("allOf");
  for (const Json& part : schema["allOf"]) {
    for (const auto& [key, value] : resolved(part).items()) {
      if (all.contains(key) && all[key] != value)
        refuse("its parameters use allOf with conflicting keywords");
      all[key] = value;
    }
  }
  return all;
}

std::string SchemaGrammar::bare_list(const Json& schema, std::string_view quote) {
  const int low = count_of(schema, "minItems", 0);
  const int high = count_of(schema, "maxItems", -1);
  if (schema.contains("prefixItems")) return bare_tuple(schema, quote);
  if (high == 0) return writer_.literal("[]");
  const std::string item =
      writer_.rule(bare_value(schema.contains("items") ? schema["items"] : Json::object(), quote));
  const std::string most = high > 0 ? std::to_string(high - 1) : "";
  const std::string filled = writer_.rule(
      fmt::format("\"[\" {} (\",\" {}){{{},{}}} \"]\"", item, item, std::max(low - 1, 0), most));
  return low > 0 ? filled + ' ' : fmt::format("( {} | \"[]\" ) ", filled);
}

// Exactly minItems items.
std::string SchemaGrammar::bare_tuple(const Json& schema, std::string_view quote) {
  const Json& items = schema["prefixItems"];
  const int low = count_of(schema, "minItems", 0);
  if (!items.is_array() || low > static_cast<int>(items.size()))
    refuse("it has a list whose minItems exceeds its prefixItems");
  std::string expression = "\"[\" ";
  for (int i = 0; i < low; ++i) {
    if (i > 0) expression += "\",\" ";
    expression += bare_value(items[static_cast<size_t>(i)], quote);
  }
  return expression + "\"]\" ";
}

// Members in the schema's order; optional members may be omitted together with their comma.
std::string SchemaGrammar::bare_members(const Json& schema, std::string_view quote) {
  check_object(schema);
  std::vector<std::pair<std::string, bool>> members;  // rule, required
  if (schema.contains("properties") && schema["properties"].is_object()) {
    for (const auto& [key, value] : schema["properties"].items()) {
      if (key.find(quote) != std::string::npos)
        refuse(fmt::format("the key `{}` cannot be written", key));
      members.emplace_back(
          writer_.rule(writer_.literal(bare_key(key, quote) + ":") + bare_value(value, quote)),
          is_required(schema, key));
    }
  }
  std::string first;  // the rest from a member on, if no member precedes it
  std::string after;  // the same, if one does
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    const auto& [rule, required] = *member;
    const std::string rest = after.empty() ? "" : after + " ";
    std::string with_first = rule + " " + rest;
    std::string with_comma = "\",\" " + rule + " " + rest;
    if (!required) {
      with_first += first.empty() ? "| \"\"" : "| " + first;
      with_comma += after.empty() ? "| \"\"" : "| " + after;
    }
    first = writer_.rule(with_first);
    after = writer_.rule(with_comma);
  }
  return "\"{\" " + first + " \"}\" ";
}

std::string SchemaGrammar::bare_of_type(const std::string& type, const Json& schema,
                                        std::string_view quote) {
  if (type == "string")
    return writer_.literal(quote) + raw_string(schema, {.lead = {}, .marker = quote}, 0);
  if (type == "object") return bare_members(schema, quote);
  if (type == "array") {
    check_object(schema);
    return bare_list(schema, quote);
  }
  Json scalar = schema;
  scalar["type"] = type;
  return writer_.json(scalar, Json::object());
}

std::string SchemaGrammar::bare_value(const Json& schema, std::string_view quote) {
  if (!schema.is_object()) return bare_value(Json{{"type", "string"}}, quote);
  if (schema.contains("$ref")) return bare_reference(schema["$ref"], quote);
  if (schema.contains("allOf")) return bare_value(joined(schema), quote);
  std::vector<std::string> options;
  if (schema.contains("const")) {
    options.push_back(writer_.literal(bare_text(schema["const"], quote)));
  } else if (schema.contains("enum")) {
    for (const Json& value : schema["enum"])
      options.push_back(writer_.literal(bare_text(value, quote)));
  } else if (schema.contains("anyOf")) {
    for (const Json& option : schema["anyOf"]) options.push_back(bare_value(option, quote));
  } else if (!schema.contains("type")) {
    const bool object = schema.contains("properties");
    options.push_back(bare_of_type(object ? "object" : "string", schema, quote));
  } else if (schema["type"].is_array()) {
    for (const Json& type : schema["type"]) {
      if (type.is_string()) options.push_back(bare_of_type(type.get<std::string>(), schema, quote));
    }
  } else if (schema["type"].is_string()) {
    options.push_back(bare_of_type(schema["type"].get<std::string>(), schema, quote));
  }
  if (options.empty()) refuse("its parameters have a schema without a type");
  std::string all;
  for (const std::string& option : options) all += (all.empty() ? "" : "| ") + option;
  return writer_.rule(all) + ' ';
}

std::string SchemaGrammar::bare_object(std::string_view quote) {
  return bare_members(root_, quote);
}

}  // namespace octavo
