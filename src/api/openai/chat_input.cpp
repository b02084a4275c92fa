#include "api/openai/chat_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/fields/field_kinds.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxMessages = 4096;
constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

// Collects the images of the messages, in order.
class ImageParts {
 public:
  explicit ImageParts(std::vector<ImageSource>& images)
      : images_(images), translated_(std::exchange(images, {})) {}

  // False if the part is not an image.
  bool take(const Json& part, const Json& type, const std::string& where) {
    if (type == "image_url") {
      add_image(images_, image_of(part, where));
    } else if (type == kTranslatedImage && !translated_.empty()) {
      images_.push_back(translated_.at(part.at("index").get<size_t>()));
    } else {
      return false;
    }
    return true;
  }

 private:
  // {"image_url":{"url","detail"}}, or the URL itself.
  static ImageSource image_of(const Json& part, const std::string& where) {
    const std::string field = where + ".image_url";
    const auto given = part.find("image_url");
    if (given == part.end()) refuse(field, "is missing");
    if (!given->is_object()) return image_at_url(*given, field);
    const auto url = given->find("url");
    if (url == given->end()) refuse(field + ".url", "is missing");
    ImageSource image = image_at_url(*url, field + ".url");
    image.low_detail = is_low_detail(given->value("detail", Json()), field + ".detail");
    return image;
  }

  std::vector<ImageSource>& images_;
  const std::vector<ImageSource> translated_;
};

// Text parts are joined with newlines; with images, the parts stay apart for the chat template.
Json read_parts(const Json& content, const std::string& field, bool may_have_images,
                ImageParts& images) {
  Json parts = Json::array();
  bool has_images = false;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    if (!part.is_object()) refuse(field, "must be a string or a list of objects with a type");
    const Json type = part.value("type", Json());
    const std::string where = fmt::format("{}[{}]", field, i);
    if (type == "text") {
      parts.push_back({{"type", "text"},
                       {"text", to_string(part.value("text", Json()), field, kMaxTextBytes)}});
    } else if (images.take(part, type, where)) {
      if (!may_have_images) refuse(where, "images may be in messages of the roles user and tool");
      parts.push_back({{"type", "image"}});
      has_images = true;
    } else {
      refuse(field,
             fmt::format("has a part of type {}; text and image_url are supported", shown(type)));
    }
  }
  if (has_images) return parts;
  std::string text;
  for (const Json& part : parts) {
    if (&part != &parts.front()) text += '\n';
    text += part.at("text").get_ref<const std::string&>();
  }
  return text;
}

Json read_message(const Json& given, const std::string& field, ImageParts& images) {
  if (!given.is_object()) refuse(field, "must be an object with role and content");
  const Json role = given.value("role", Json());
  if (!role.is_string() || std::ranges::count(kRoles, role.get_ref<const std::string&>()) == 0)
    refuse(field + ".role", "must be system, developer, user, assistant or tool");
  const std::string content_at = field + ".content";
  Json message = Json::object();
  for (const auto& [name, value] : given.items()) {
    if (name == "content" && value.is_array()) {  // not copied: images are long
      message[name] = read_parts(value, content_at, role == "user" || role == "tool", images);
    } else {
      message[name] = value;
    }
  }
  // Templates know OpenAI's developer role as system.
  if (role == "developer") message["role"] = "system";
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (role != "assistant") refuse(content_at, "is missing");
  } else if (!content->is_array()) {
    to_string(*content, content_at, kMaxTextBytes);
  }
  return message;
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

Json read_messages(const Json& messages, std::vector<ImageSource>& images) {
  if (!messages.is_array() || messages.empty())
    refuse("messages", "must be a list with at least one message");
  if (messages.size() > kMaxMessages)
    refuse("messages",
           fmt::format("has {} messages; at most {} are allowed", messages.size(), kMaxMessages));
  ImageParts parts(images);
  Json read = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string field = fmt::format("messages[{}]", i);
    Json message = read_message(messages[i], field, parts);
    check_calls(message, field + ".tool_calls");
    check_reasoning(message, field);
    read.push_back(std::move(message));
  }
  return read;
}

Json messages_schema() {
  const Json text = {{"type", "object"},
                     {"properties",
                      {{"type", {{"type", "string"}, {"enum", {"text"}}}},
                       {"text", string_schema(kMaxTextBytes)}}},
                     {"required", {"type", "text"}}};
  const Json url = {{"type", "object"},
                    {"properties", {{"url", image_url_schema()}, {"detail", detail_schema()}}},
                    {"required", Json::array({"url"})}};
  const Json image = {{"type", "object"},
                      {"properties",
                       {{"type", {{"type", "string"}, {"enum", {"image_url"}}}},
                        {"image_url", {{"anyOf", {image_url_schema(), url}}}}}},
                      {"required", {"type", "image_url"}}};
  const Json part = {{"anyOf", {text, image}}};
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
