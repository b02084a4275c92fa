#include "api/openai/responses_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "text/utf8.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxItems = 4096;
constexpr std::string_view kPackedMark = "octavo.";

// {"type":"input_image","image_url","detail"}
Json image_of_item(const Json& part, const std::string& where, ChatTranslation& translation) {
  const std::string field = where + ".image_url";
  if (!part.value("file_id", Json()).is_null())
    refuse(where + ".file_id", "is not supported; send image_url");
  const auto url = part.find("image_url");
  if (url == part.end() || url->is_null()) refuse(field, "is missing");
  ImageSource image = image_at_url(*url, field);
  image.low_detail = is_low_detail(part.value("detail", Json()), where + ".detail");
  return translation.add_image(std::move(image));
}

// A string, or a list of text parts; with a translation, also of images.
Json parts_of_content(const Json& content, const std::string& where, ChatTranslation* images) {
  Json parts = Json::array();
  if (content.is_string()) {
    parts.push_back(text_part({{"text", content}}, where));
    return parts;
  }
  if (!content.is_array()) refuse(where, "must be a string or a list of parts");
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string part_at = fmt::format("{}[{}]", where, i);
    const Json& part = content[i];
    if (!part.is_object()) refuse(part_at, "must be an object with a type");
    const Json type = part.value("type", Json());
    if (type == "refusal") {
      parts.push_back({{"type", "text"}, {"text", required_string(part, "refusal", part_at)}});
    } else if (type == "input_text" || type == "output_text" || type == "text") {
      parts.push_back(text_part(part, part_at));
    } else if (type == "input_image" && images != nullptr) {
      parts.push_back(image_of_item(part, part_at, *images));
    } else {
      refuse(part_at, fmt::format("has a part of type {}; supported here: {}", shown(type),
                                  images != nullptr ? "text and input_image" : "text"));
    }
  }
  return parts;
}

// Not a copy: images are long.
const Json& member_of(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// The text of a reasoning item, plain or packed.
std::optional<std::string> reasoning_of(const Json& item, const std::string& where) {
  const Json content = item.value("content", Json());
  if (content.is_array() && !content.empty()) {
    std::string text;
    for (const Json& part : content) {
      if (!part.is_object()) refuse(where + ".content", "must be a list of objects");
      text += to_string(part.value("text", Json()), where + ".content.text", kMaxTextBytes);
    }
    return text;
  }
  const Json packed = item.value("encrypted_content", Json());
  if (!packed.is_string()) return std::nullopt;
  return unpacked_reasoning(packed.get_ref<const std::string&>());
}

// Joins items into messages, in order.
class Conversation {
 public:
  explicit Conversation(ChatTranslation& translation) : translation_(translation) {}

  void add(const Json& item, const std::string& where) {
    if (!item.is_object()) refuse(where, "must be an object");
    const Json type = item.value("type", Json());
    if (type.is_null() || type == "message") {
      add_message(item, where);
    } else if (type == "reasoning") {
      add_reasoning(item, where);
    } else if (type == "function_call") {
      add_call(item,
               to_string(item.value("arguments", Json()), where + ".arguments", kMaxTextBytes),
               where);
    } else if (type == "custom_tool_call") {
      const Json arguments = {
          {"input", to_string(item.value("input", Json()), where + ".input", kMaxTextBytes)}};
      add_call(item, dump(arguments), where);
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      say({{"role", "tool"},
           {"tool_call_id", required_string(item, "call_id", where)},
           {"content",
            parts_of_content(member_of(item, "output"), where + ".output", &translation_)}});
    } else {
      refuse(where, fmt::format("is of type {}; only message, reasoning, function_call and "
                                "function_call_output are supported",
                                shown(type)));
    }
  }

  // Leading system messages are joined: many templates accept only one.
  void say_system(Json parts) {
    if (messages_.size() == 1 && messages_[0]["role"] == "system" && assistant_.is_null()) {
      for (Json& part : parts) messages_[0]["content"].push_back(std::move(part));
    } else {
      say({{"role", "system"}, {"content", std::move(parts)}});
    }
  }

  Json take() {
    flush();
    return std::move(messages_);
  }

 private:
  void add_message(const Json& item, const std::string& where) {
    const Json role = item.value("role", Json());
    Json parts = parts_of_content(member_of(item, "content"), where + ".content",
                                  role == "user" ? &translation_ : nullptr);
    if (role == "assistant") {
      if (has("content") || has("tool_calls")) flush();
      assistant()["content"] = std::move(parts);
    } else if (role == "system" || role == "developer") {
      say_system(std::move(parts));
    } else if (role == "user") {
      say({{"role", "user"}, {"content", std::move(parts)}});
    } else {
      refuse(where + ".role", "must be user, assistant, system or developer");
    }
  }

  void add_reasoning(const Json& item, const std::string& where) {
    const auto text = reasoning_of(item, where);
    if (has("content") || has("tool_calls")) flush();
    if (!text) return translation_.ignore("input", "reasoning");  // encrypted by another provider
    if (has("reasoning")) {
      assistant()["reasoning"] = assistant()["reasoning"].get<std::string>() + *text;
    } else {
      assistant()["reasoning"] = *text;
    }
  }

  void add_call(const Json& item, std::string arguments, const std::string& where) {
    Json call = tool_call(required_string(item, "call_id", where),
                          required_string(item, "name", where), std::move(arguments));
    assistant()["tool_calls"].push_back(std::move(call));
  }

  bool has(const char* field) const {
    return assistant_.is_object() && assistant_.contains(field) && !assistant_[field].is_null();
  }
  Json& assistant() {
    if (assistant_.is_null()) assistant_ = {{"role", "assistant"}, {"content", nullptr}};
    return assistant_;
  }
  void flush() {
    if (!assistant_.is_null()) messages_.push_back(std::move(assistant_));
    assistant_ = nullptr;
  }
  void say(Json message) {
    flush();
    messages_.push_back(std::move(message));
  }

  ChatTranslation& translation_;
  Json messages_ = Json::array();
  Json assistant_ = nullptr;  // the message being assembled
};

// {"type":"allowed_tools","mode","tools"}: other tools are not offered.
void allow_tools(const Json& value, ChatTranslation& translation) {
  const Json mode = value.value("mode", Json());
  if (mode != "auto" && mode != "required") refuse("tool_choice.mode", "must be auto or required");
  const Json allowed = value.value("tools", Json());
  if (!allowed.is_array()) refuse("tool_choice.tools", "must be a list of tools");
  Json kept = Json::array();
  for (const Json& tool : translation.chat.value("tools", Json::array())) {
    const bool listed = std::ranges::any_of(allowed, [&](const Json& one) {
      return one.is_object() && one.value("name", Json()) == tool["function"]["name"];
    });
    if (listed) kept.push_back(tool);
  }
  translation.chat.erase("tools");
  if (!kept.empty()) translation.chat["tools"] = std::move(kept);
  translation.chat["tool_choice"] = mode;
}

}  // namespace

Json items_of(const Json& input) {
  if (input.is_string())
    return Json::array({{{"type", "message"},
                         {"role", "user"},
                         {"content", Json::array({{{"type", "input_text"}, {"text", input}}})}}});
  if (!input.is_array() || input.empty())
    refuse("input", "must be a string or a list with at least one item");
  if (input.size() > kMaxItems)
    refuse("input", fmt::format("has {} items; at most {} are allowed", input.size(), kMaxItems));
  return input;
}

Json conversation_of(const Json& instructions, const Json& earlier, const Json& input,
                     ChatTranslation& translation) {
  Conversation conversation(translation);
  if (!instructions.is_null())
    conversation.say_system(parts_of_content(instructions, "instructions", nullptr));
  for (const Json& item : earlier) conversation.add(item, "previous_response_id");
  for (size_t i = 0; i < input.size(); ++i) conversation.add(input[i], fmt::format("input[{}]", i));
  return conversation.take();
}

void read_response_tools(const Json& value, ChatTranslation& translation) {
  if (!value.is_array() || value.size() > kMaxTools)
    refuse("tools", fmt::format("must be a list of at most {} tools", kMaxTools));
  Json tools = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    if (!value[i].is_object()) refuse(where, "must be an object with a type");
    const std::string type =
        to_string(value[i].value("type", Json()), where + ".type", kMaxNameBytes);
    if (type == "function") {
      tools.push_back(function_tool(value[i], "parameters", where));
    } else {
      translation.ignore("tools", type);
    }
  }
  if (!tools.empty()) translation.chat["tools"] = std::move(tools);
}

void read_response_tool_choice(const Json& value, ChatTranslation& translation) {
  if (value == "auto" || value == "none" || value == "required") {
    translation.chat["tool_choice"] = value;
    return;
  }
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  if (type == "function") {
    translation.chat["tool_choice"] = {
        {"type", "function"},
        {"function", {{"name", required_string(value, "name", "tool_choice")}}}};
  } else if (type == "allowed_tools") {
    allow_tools(value, translation);
  } else {
    refuse("tool_choice", "must be auto, none, required, a function or allowed_tools");
  }
}

std::string packed_reasoning(std::string_view text) {
  std::string packed(kPackedMark);
  append_base64(packed, std::as_bytes(std::span(text)));
  return packed;
}

std::optional<std::string> unpacked_reasoning(std::string_view packed) {
  if (!packed.starts_with(kPackedMark)) return std::nullopt;
  auto text = from_base64(packed.substr(kPackedMark.size()));
  if (text && !is_valid_utf8(*text)) return std::nullopt;
  return text;
}

Json input_schema() {
  const auto item = [](const char* type, Json properties, Json required) -> Json {
    properties["type"] = {{"type", "string"}, {"enum", {type}}};
    required.push_back("type");
    return {{"type", "object"}, {"properties", properties}, {"required", required}};
  };
  const Json text = string_schema(kMaxTextBytes);
  const Json name = filled_string_schema(kMaxTextBytes);
  const Json words = {
      {"type", "object"},
      {"properties",
       {{"type", {{"type", "string"}, {"enum", {"input_text", "output_text", "text"}}}},
        {"text", text}}},
      {"required", {"type", "text"}}};
  const Json image =
      item("input_image", {{"image_url", image_url_schema()}, {"detail", detail_schema()}},
           Json::array({"image_url"}));
  const Json part = {{"anyOf", {words, image}}};
  const Json content = {{"anyOf", {text, {{"type", "array"}, {"items", part}}}}};
  const Json message = {
      {"type", "object"},
      {"properties",
       {{"role", {{"type", "string"}, {"enum", {"user", "assistant", "system", "developer"}}}},
        {"content", content}}},
      {"required", {"role", "content"}}};
  const Json items = {
      {"anyOf",
       {message,
        item("function_call", {{"call_id", name}, {"name", name}, {"arguments", text}},
             Json::array({"call_id", "name", "arguments"})),
        item("function_call_output", {{"call_id", name}, {"output", content}},
             Json::array({"call_id", "output"})),
        item("reasoning", Json::object(), Json::array())}}};
  return {
      {"anyOf",
       {text, {{"type", "array"}, {"items", items}, {"minItems", 1}, {"maxItems", kMaxItems}}}}};
}

}  // namespace octavo::api
