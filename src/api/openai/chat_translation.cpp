#include "api/openai/chat_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace octavo::api {
namespace {

constexpr size_t kMaxIgnored = 32;  // bounds the header
constexpr size_t kLongestName = 64;

bool is_plain(std::string_view name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, plain);
}

// Of "messages": "messages[2].content" is a part, "messages_more" is not.
bool is_field_or_part(std::string_view param, std::string_view field) {
  if (!param.starts_with(field)) return false;
  const std::string_view rest = param.substr(field.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '[';
}

}  // namespace

void rethrow_named(const RequestError& error, const std::vector<FieldName>& names) {
  const std::string_view param = error.param();
  for (const FieldName& name : names) {
    if (!is_field_or_part(param, name.chat)) continue;
    const std::string_view message = std::string_view(error.what()).substr(param.size() + 2);
    // The position inside the chat field does not apply to the API's own field.
    throw RequestError(error.status(), std::string(name.own), std::string(message));
  }
  throw error;
}

void ChatTranslation::ignore(std::string_view where, std::string_view name) {
  std::string full(where);
  if (is_plain(name)) full += fmt::format(".{}", name);
  if (ignored.size() < kMaxIgnored && std::ranges::count(ignored, full) == 0)
    ignored.push_back(std::move(full));
}

GenerationJob prepare_translated(const ChatTranslation& translation, IgnoredFields ignored,
                                 const std::vector<FieldName>& names, const ServedModel& model,
                                 const Preparation& preparation) {
  try {
    GenerationJob job =
        prepare_translated_chat(translation.chat, translation.images, model, preparation);
    ignored.insert(ignored.end(), translation.ignored.begin(), translation.ignored.end());
    ignored.insert(ignored.end(), job.ignored.begin(), job.ignored.end());
    job.ignored = std::move(ignored);
    return job;
  } catch (const RequestError& error) {
    rethrow_named(error, names);
  }
}

size_t count_translated(const ChatTranslation& translation, const std::vector<FieldName>& names,
                        const ServedModel& model, const Preparation& preparation) {
  try {
    return chat_prompt_tokens(translation.chat, model, preparation, translation.images).size();
  } catch (const RequestError& error) {
    rethrow_named(error, names);
  }
}

void settle_tool_choice(ChatTranslation& translation) {
  if (translation.chat.contains("tools")) return;
  const Json choice = translation.chat.value("tool_choice", Json("auto"));
  if (choice != "auto" && choice != "none")
    refuse("tool_choice", "requires a tool call, but `tools` contains no function");
  translation.chat.erase("tool_choice");
  translation.chat.erase("parallel_tool_calls");
}

std::string required_string(const Json& object, const char* name, const std::string& where) {
  const std::string field = fmt::format("{}.{}", where, name);
  std::string text = to_string(object.value(name, Json()), field, kMaxTextBytes);
  if (text.empty()) refuse(field, "is empty");
  return text;
}

Json text_part(const Json& object, const std::string& where) {
  return {{"type", "text"},
          {"text", to_string(object.value("text", Json()), where + ".text", kMaxTextBytes)}};
}

Json function_tool(const Json& tool, const char* schema, const std::string& where) {
  Json function = {{"name", required_string(tool, "name", where)}};
  const auto copy = [&](const char* from, const char* to) {
    if (tool.contains(from) && !tool.at(from).is_null()) function[to] = tool.at(from);
  };
  copy("description", "description");
  copy(schema, "parameters");
  copy("strict", "strict");
  if (function.contains("parameters") && !function["parameters"].is_object())
    refuse(fmt::format("{}.{}", where, schema), "must be a JSON schema: an object");
  return {{"type", "function"}, {"function", std::move(function)}};
}

Json tool_call(std::string id, std::string name, std::string arguments) {
  return {{"id", std::move(id)},
          {"type", "function"},
          {"function", {{"name", std::move(name)}, {"arguments", std::move(arguments)}}}};
}

}  // namespace octavo::api
