#include "api/openai/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/fields/field_kinds.h"
#include "text/dialects/call_sink.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxDescriptionBytes = 1u << 20;

void check_name(const std::string& name, const std::string& field) {
  if (name.empty() || !std::ranges::all_of(name, is_name_character))
    refuse(field, "must be letters, digits and _ - . : /");
}

Tool read_function(const Json& function, const std::string& field) {
  if (!function.is_object()) refuse(field, "must be an object with a name");
  Tool tool{.name = to_string(function.value("name", Json()), field + ".name", kMaxCallName),
            .parameters = nullptr};
  check_name(tool.name, field + ".name");
  const auto given = [&](const char* key) {
    return function.contains(key) && !function.at(key).is_null();
  };
  if (given("description"))
    to_string(function.at("description"), field + ".description", kMaxDescriptionBytes);
  if (given("strict")) to_bool(function.at("strict"), field + ".strict");
  // OpenAI: a function without parameters takes none.
  tool.parameters = given("parameters") ? function.at("parameters")
                                        : Json{{"type", "object"}, {"properties", Json::object()}};
  if (!tool.parameters.is_object()) refuse(field + ".parameters", "must be a JSON schema");
  if (tool.parameters.contains("type") && tool.parameters["type"] != "object")
    refuse(field + ".parameters", "must be the schema of an object");
  return tool;
}

// The name of a kind of tool, safe for a header.
std::string shown_type(const Json& type) {
  std::string shown;
  if (type.is_string()) {
    for (const char c : type.get_ref<const std::string&>().substr(0, 64)) {
      if (is_name_character(c)) shown += c;
    }
  }
  return "tools." + (shown.empty() ? "unknown" : shown);
}

void note(IgnoredFields& ignored, const std::string& name) {
  if (std::ranges::count(ignored, name) == 0) ignored.push_back(name);
}

void read_tools(const Json& value, ToolCallFields& fields) {
  if (!value.is_array()) refuse("tools", "must be a list");
  if (value.size() > kMaxTools)
    refuse("tools", fmt::format("has {} tools; at most {} are allowed", value.size(), kMaxTools));
  Json functions = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string field = fmt::format("tools[{}]", i);
    if (!value[i].is_object()) refuse(field, "must be an object with a type");
    const Json type = value[i].value("type", Json("function"));
    if (type != "function") {
      // Agents send hosted tools unconditionally, so they are ignored.
      note(fields.ignored, shown_type(type));
      continue;
    }
    Tool tool = read_function(value[i].value("function", Json()), field + ".function");
    if (std::ranges::count(fields.functions, tool.name, &Tool::name) > 0)
      refuse(field + ".function.name", fmt::format("`{}` is defined twice", tool.name));
    fields.functions.push_back(std::move(tool));
    functions.push_back(value[i]);
  }
  if (!functions.empty()) fields.tools = std::move(functions);
}

void read_choice(const Json& value, ToolCallFields& fields) {
  const char* const right = "must be auto, none, required, or name a function";
  if (value == "auto") {
    fields.choice = ToolChoice::kAuto;
  } else if (value == "none") {
    fields.choice = ToolChoice::kNone;
  } else if (value == "required") {
    fields.choice = ToolChoice::kRequired;
  } else if (value.is_object() && value.value("type", Json()) == "function" &&
             value.contains("function") && value["function"].is_object()) {
    fields.choice = ToolChoice::kNamed;
    fields.named = to_string(value["function"].value("name", Json()), "tool_choice.function.name",
                             kMaxCallName);
  } else {
    refuse("tool_choice", right);
  }
}

Json tools_schema() {
  const Json function = {
      {"type", "object"},
      {"properties",
       {{"name",
         {{"type", "string"}, {"pattern", "^[a-zA-Z0-9_.:/-]+$"}, {"maxLength", kMaxCallName}}},
        {"description", string_schema(kMaxDescriptionBytes)},
        {"parameters", {{"type", "object"}}},
        {"strict", boolean_schema()}}},
      {"required", Json::array({"name"})}};
  const Json tool = {
      {"type", "object"},
      {"properties",
       {{"type", {{"type", "string"}, {"enum", {"function"}}}}, {"function", function}}},
      {"required", {"type", "function"}}};
  return {{"type", "array"}, {"items", tool}, {"maxItems", kMaxTools}};
}

Json choice_schema() {
  const Json named = {{"type", "object"},
                      {"properties",
                       {{"type", {{"type", "string"}, {"enum", {"function"}}}},
                        {"function",
                         {{"type", "object"},
                          {"properties", {{"name", string_schema(kMaxCallName)}}},
                          {"required", Json::array({"name"})}}}}},
                      {"required", {"type", "function"}}};
  return {{"anyOf", {{{"type", "string"}, {"enum", {"auto", "none", "required"}}}, named}}};
}

}  // namespace

const FieldTable<ToolCallFields>& tool_fields() {
  static const FieldTable<ToolCallFields> table = {
      used<ToolCallFields>(
          "tools", tools_schema(),
          "Functions the model may call. Other kinds of tool are ignored and listed in "
          "x-octavo-ignored",
          read_tools),
      used<ToolCallFields>("tool_choice", choice_schema(),
                           "required and a function's name are enforced by a grammar", read_choice),
      used<ToolCallFields>(
          "parallel_tool_calls", boolean_schema(),
          "false: the output ends after the first tool call",
          [](const Json& v, ToolCallFields& t) { t.parallel = to_bool(v, "parallel_tool_calls"); }),
  };
  return table;
}

void check_tools(const ToolCallFields& fields) {
  if (!fields.forced()) return;
  if (fields.functions.empty()) refuse("tool_choice", "requires tools");
  if (fields.choice == ToolChoice::kNamed &&
      std::ranges::count(fields.functions, fields.named, &Tool::name) == 0)
    refuse("tool_choice", fmt::format("names `{}`, which is not in tools", fields.named));
}

}  // namespace octavo::api
