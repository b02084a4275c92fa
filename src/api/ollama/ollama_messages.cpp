#include "api/ollama/ollama_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>

namespace octavo::api {
namespace {

constexpr size_t kMaxOllamaMessages = 4096;

// Ollama's clients drop the ids of calls, but some templates need them. Results answer the calls of
// the last message that has any, those of their tool's name in order.
class CallIds {
 public:
  // Before the calls of a message.
  void clear() { open_.clear(); }

  std::string add(const Json& call, const std::string& name) {
    const Json id = call.value("id", Json());
    open_.push_back({id.is_string() && !id.empty() ? id.get<std::string>()
                                                   : fmt::format("call_{:09}", ++count_),
                     name});
    return open_.back().id;
  }

  // The id of the call that a result without one answers.
  std::string take(const std::string& tool) {
    auto found = std::ranges::find(open_, tool, &OpenCall::name);
    if (found == open_.end()) found = open_.begin();
    if (found == open_.end()) return fmt::format("call_{:09}", ++count_);
    std::string id = std::move(found->id);
    open_.erase(found);
    return id;
  }

  void remove(const std::string& id) {
    std::erase_if(open_, [&](const OpenCall& call) { return call.id == id; });
  }

 private:
  struct OpenCall {
    std::string id;
    std::string name;
  };
  std::deque<OpenCall> open_;
  int count_ = 0;
};

std::string optional_text(const Json& object, const char* name, const std::string& where) {
  const Json value = object.value(name, Json());
  return value.is_null() ? "" : to_string(value, fmt::format("{}.{}", where, name), kMaxTextBytes);
}

Json calls_of_message(const Json& calls, const std::string& where, CallIds& ids) {
  if (!calls.is_array() || calls.size() > kMaxTools)
    refuse(where, fmt::format("must be a list of at most {} calls", kMaxTools));
  Json translated = Json::array();
  ids.clear();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string call_at = fmt::format("{}[{}]", where, i);
    const Json& call = calls[i];
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
      refuse(call_at, "must be an object with a function");
    const Json& function = call["function"];
    const std::string name = required_string(function, "name", call_at + ".function");
    const Json arguments = function.value("arguments", Json::object());
    if (!arguments.is_object()) refuse(call_at + ".function.arguments", "must be an object");
    translated.push_back(tool_call(ids.add(call, name), name, dump(arguments)));
  }
  return translated;
}

Json content_of(const Json& message, const std::string& where, ChatTranslation& translation) {
  const auto images = message.find("images");
  return ollama_content(images == message.end() ? Json() : *images, where + ".images",
                        optional_text(message, "content", where), translation);
}

Json result_message(const Json& message, const std::string& where, CallIds& ids,
                    ChatTranslation& translation) {
  const std::string tool = optional_text(message, "tool_name", where);
  std::string id = optional_text(message, "tool_call_id", where);
  if (id.empty()) {
    id = ids.take(tool);
  } else {
    ids.remove(id);
  }
  Json result = {{"role", "tool"},
                 {"tool_call_id", std::move(id)},
                 {"content", content_of(message, where, translation)}};
  if (!tool.empty()) result["name"] = tool;
  return result;
}

std::string role_of(const Json& message, const std::string& where) {
  std::string role = to_string(message.value("role", Json()), where + ".role", kMaxNameBytes);
  for (char& c : role) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (role != "system" && role != "user" && role != "assistant" && role != "tool")
    refuse(where + ".role", "must be system, user, assistant or tool");
  return role;
}

Json translate_message(const Json& message, const std::string& where, CallIds& ids,
                       ChatTranslation& translation) {
  if (!message.is_object()) refuse(where, "must be an object with role and content");
  const std::string role = role_of(message, where);
  if (role == "tool") return result_message(message, where, ids, translation);
  const size_t images_before = translation.images.size();
  Json translated = {{"role", role}, {"content", content_of(message, where, translation)}};
  if (role != "user" && translation.images.size() > images_before)
    refuse(where + ".images", "images may be in messages of the roles user and tool");
  const std::string thinking = optional_text(message, "thinking", where);
  if (!thinking.empty()) translated["reasoning"] = thinking;
  const Json calls = message.value("tool_calls", Json());
  if (!calls.is_null() && !calls.empty())
    translated["tool_calls"] = calls_of_message(calls, where + ".tool_calls", ids);
  return translated;
}

}  // namespace

Json ollama_content(const Json& images, const std::string& where, std::string text,
                    ChatTranslation& translation) {
  if (images.is_null() || images == Json::array()) return text;
  if (!images.is_array()) refuse(where, "must be a list of images in base64");
  Json parts = Json::array();
  for (size_t i = 0; i < images.size(); ++i)
    parts.push_back(
        translation.add_image(image_in_base64(images[i], fmt::format("{}[{}]", where, i))));
  if (!text.empty()) parts.push_back({{"type", "text"}, {"text", std::move(text)}});
  return parts;
}

Json ollama_images_schema() { return {{"type", "array"}, {"items", image_url_schema()}}; }

void read_ollama_messages(const Json& value, ChatTranslation& translation) {
  if (value.size() > kMaxOllamaMessages)
    refuse("messages", fmt::format("has {} messages; at most {} are allowed", value.size(),
                                   kMaxOllamaMessages));
  Json messages = Json::array();
  CallIds ids;
  for (size_t i = 0; i < value.size(); ++i)
    messages.push_back(
        translate_message(value[i], fmt::format("messages[{}]", i), ids, translation));
  const Json& last = messages.back();
  if (last.at("role") == "assistant" && !last.contains("tool_calls")) {
    translation.chat["add_generation_prompt"] = false;
    translation.chat["continue_final_message"] = true;
  }
  translation.chat["messages"] = std::move(messages);
}

Json ollama_messages_schema() {
  const Json function = {
      {"type", "object"},
      {"properties",
       {{"name", filled_string_schema(kMaxTextBytes)}, {"arguments", {{"type", "object"}}}}},
      {"required", Json::array({"name"})}};
  const Json call = {{"type", "object"},
                     {"properties", {{"id", {{"type", "string"}}}, {"function", function}}},
                     {"required", Json::array({"function"})}};
  const Json message = {
      {"type", "object"},
      {"properties",
       {{"role", {{"type", "string"}, {"enum", {"system", "user", "assistant", "tool"}}}},
        {"content", string_schema(kMaxTextBytes)},
        {"images", ollama_images_schema()},
        {"thinking", string_schema(kMaxTextBytes)},
        {"tool_calls", {{"type", "array"}, {"items", call}}},
        {"tool_name", string_schema(kMaxTextBytes)},
        {"tool_call_id", string_schema(kMaxTextBytes)}}},
      {"required", Json::array({"role"})}};
  return {{"type", "array"}, {"items", message}, {"maxItems", kMaxOllamaMessages}};
}

}  // namespace octavo::api
