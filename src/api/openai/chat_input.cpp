#include "api/openai/chat_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "api/fields/field_kinds.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxMessages = 4096;
constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

std::string text_of_part(const Json& part, const std::string& field) {
  if (!part.is_object()) refuse(field, "must be a string or a list of objects with a type");
  const Json type = part.value("type", Json());
  if (type != "text")
    refuse(field, fmt::format("has a part of type {}; only text is supported", shown(type)));
  return to_string(part.value("text", Json()), field, kMaxTextBytes);
}

// Joins text parts with newlines.
std::string joined(const Json& parts, const std::string& field) {
  std::string text;
  for (const Json& part : parts) {
    if (&part != &parts.front()) text += '\n';
    text += text_of_part(part, field);
  }
  return text;
}

void read_content(Json& message, const std::string& field, bool may_be_empty) {
  const Json content = message.value("content", Json());
  if (content.is_array()) {
    message["content"] = joined(content, field);
  } else if (content.is_null()) {
    if (!may_be_empty) refuse(field, "is missing");
  } else {
    to_string(content, field, kMaxTextBytes);
  }
}

void check_calls(const Json& message, const std::string& field) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) return;
  if (!calls->is_array()) refuse(field, "must be a list");
  for (size_t i = 0; i < calls->size(); ++i) {
    const std::string call = fmt::format("{}[{}]", field, i);
    const Json& given = (*calls)[i];
    if (!given.is_object() || !given.contains("function") || !given["function"].is_object())
      refuse(call, "must be an object with a function");
    const Json& function = given["function"];
    to_string(function.value("name", Json()), call + ".function.name", kMaxTextBytes);
    const Json arguments = function.value("arguments", Json(""));
    if (!arguments.is_object() && !arguments.is_null())
      to_string(arguments, call + ".function.arguments", kMaxTextBytes);
  }
}

void check_reasoning(const Json& message, const std::string& field) {
  for (const char* name : {"reasoning", "reasoning_content"}) {
    const auto text = message.find(name);
    if (text != message.end() && !text->is_null())
      to_string(*text, field + "." + name, kMaxTextBytes);
  }
}

}  // namespace

Json read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty())
    refuse("messages", "must be a list with at least one message");
  if (messages.size() > kMaxMessages)
    refuse("messages",
           fmt::format("has {} messages; at most {} are allowed", messages.size(), kMaxMessages));
  Json read = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string field = fmt::format("messages[{}]", i);
    Json message = messages[i];
    if (!message.is_object()) refuse(field, "must be an object with role and content");
    const Json role = message.value("role", Json());
    if (!role.is_string() || std::ranges::count(kRoles, role.get_ref<const std::string&>()) == 0)
      refuse(field + ".role", "must be system, developer, user, assistant or tool");
    // Templates know OpenAI's developer role as system.
    if (role == "developer") message["role"] = "system";
    read_content(message, field + ".content", role == "assistant");
    check_calls(message, field + ".tool_calls");
    check_reasoning(message, field);
    read.push_back(std::move(message));
  }
  return read;
}

Json messages_schema() {
  const Json part = {{"type", "object"},
                     {"properties",
                      {{"type", {{"type", "string"}, {"enum", {"text"}}}},
                       {"text", string_schema(kMaxTextBytes)}}},
                     {"required", {"type", "text"}}};
  const Json content = {
      {"anyOf", {string_schema(kMaxTextBytes), {{"type", "array"}, {"items", part}}}}};
  const Json function = {
      {"type", "object"},
      {"properties",
       {{"name", {{"type", "string"}}}, {"arguments", {{"type", {"string", "object", "null"}}}}}},
      {"required", Json::array({"name"})}};
  const Json calls = {{"type", {"array", "null"}},
                      {"items",
                       {{"type", "object"},
                        {"properties", {{"function", function}}},
                        {"required", Json::array({"function"})}}}};
  const Json thought = {{"type", {"string", "null"}}, {"maxLength", kMaxTextBytes}};
  const Json message = {{"type", "object"},
                        {"properties",
                         {{"role", {{"type", "string"}, {"enum", kRoles}}},
                          {"content", content},
                          {"tool_calls", calls},
                          {"reasoning", thought},
                          {"reasoning_content", thought}}},
                        {"required", {"role", "content"}}};
  // An assistant message may have tool calls only.
  const Json silent = {{"type", "object"},
                       {"properties",
                        {{"role", {{"type", "string"}, {"enum", {"assistant"}}}},
                         {"content", {{"type", "null"}}},
                         {"tool_calls", calls},
                         {"reasoning", thought},
                         {"reasoning_content", thought}}},
                       {"required", Json::array({"role"})}};
  const Json any = {{"anyOf", {message, silent}}};
  return {{"type", "array"}, {"items", any}, {"minItems", 1}, {"maxItems", kMaxMessages}};
}

}  // namespace octavo::api
