#include "api/anthropic/messages_input.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace octavo::api {
namespace {

constexpr size_t kMaxMessages = 4096;

std::string type_of(const Json& block, const std::string& where) {
  if (!block.is_object()) refuse(where, "must be an object with a type");
  return to_string(block.value("type", Json()), where + ".type", kMaxNameBytes);
}

// Records members other than `known`, such as cache_control, as ignored.
void ignore_others(const Json& object, const std::set<std::string_view>& known,
                   std::string_view where, ChatTranslation& translation) {
  for (const auto& [name, value] : object.items())
    if (!value.is_null() && !known.contains(name)) translation.ignore(where, name);
}

[[noreturn]] void refuse_block(const std::string& where, const std::string& type,
                               std::string_view takes) {
  refuse(where,
         fmt::format("has a block of type {}; supported types: {}", shown(Json(type)), takes));
}

// {"type":"image","source":{"type":"base64","media_type","data"} or {"type":"url","url"}}
Json image_of_block(const Json& block, const std::string& where, ChatTranslation& translation) {
  const std::string source_at = where + ".source";
  const Json::const_iterator source = block.find("source");
  if (source == block.end() || !source->is_object())
    refuse(source_at, "must be an object of type base64 or url");
  const Json type = source->value("type", Json());
  const char* const name = type == "base64" ? "data" : type == "url" ? "url" : nullptr;
  if (name == nullptr) refuse(source_at + ".type", "must be base64 or url, not " + shown(type));
  const std::string field = fmt::format("{}.{}", source_at, name);
  const auto value = source->find(name);
  if (value == source->end()) refuse(field, "is missing");
  ignore_others(block, {"type", "source"}, "content", translation);
  return translation.add_image(type == "url" ? image_at_url(*value, field)
                                             : image_in_base64(*value, field));
}

std::string joined(const Json& parts) {
  std::string text;
  for (const Json& part : parts) {
    if (!text.empty()) text += '\n';
    text += part.at("text").get_ref<const std::string&>();
  }
  return text;
}

// A string or a list of text blocks, as the parts of a chat message; `images`: or image blocks.
Json parts_of_blocks(const Json& content, const std::string& where, bool images,
                     ChatTranslation& translation) {
  Json parts = Json::array();
  if (content.is_string()) {
    parts.push_back(text_part({{"text", content}}, where));
    return parts;
  }
  if (!content.is_array()) refuse(where, "must be a string or a list of blocks");
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string block_at = fmt::format("{}[{}]", where, i);
    const std::string type = type_of(content[i], block_at);
    if (images && type == "image") {
      parts.push_back(image_of_block(content[i], block_at, translation));
      continue;
    }
    if (type != "text") refuse_block(block_at, type, images ? "text, image" : "text");
    parts.push_back(text_part(content[i], block_at));
    ignore_others(content[i], {"type", "text"}, "content", translation);
  }
  return parts;
}

Json tool_message(const Json& block, const std::string& where, ChatTranslation& translation) {
  const auto given = block.find("content");
  const size_t images_before = translation.images.size();
  Json parts = given == block.end() || given->is_null()
                   ? Json::array()
                   : parts_of_blocks(*given, where + ".content", true, translation);
  const bool has_images = translation.images.size() > images_before;
  const Json failed = block.value("is_error", Json());
  // A chat message has no error flag, so the text says it.
  const bool is_error = !failed.is_null() && to_bool(failed, where + ".is_error");
  ignore_others(block, {"type", "tool_use_id", "content", "is_error"}, "content", translation);
  Json content;
  if (has_images) {
    if (is_error) parts.insert(parts.begin(), text_part({{"text", "Error: "}}, where));
    content = std::move(parts);
  } else {
    content = (is_error ? "Error: " : "") + joined(parts);
  }
  return {{"role", "tool"},
          {"tool_call_id", required_string(block, "tool_use_id", where)},
          {"content", std::move(content)}};
}

// Text, images and tool results, in order.
void read_user(const Json& content, const std::string& where, ChatTranslation& translation,
               Json& messages) {
  Json parts = Json::array();
  const auto say = [&] {
    if (!parts.empty()) messages.push_back({{"role", "user"}, {"content", std::move(parts)}});
    parts = Json::array();
  };
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string block_at = fmt::format("{}[{}]", where, i);
    const Json& block = content[i];
    const std::string type = type_of(block, block_at);
    if (type == "text") {
      parts.push_back(text_part(block, block_at));
      ignore_others(block, {"type", "text"}, "content", translation);
    } else if (type == "image") {
      parts.push_back(image_of_block(block, block_at, translation));
    } else if (type == "tool_result") {
      say();
      messages.push_back(tool_message(block, block_at, translation));
    } else {
      refuse_block(block_at, type, "text, image, tool_result");
    }
  }
  say();
}

void add_reasoning(Json& message, const std::string& text) {
  std::string all = message.value("reasoning", std::string());
  if (!all.empty()) all += '\n';
  message["reasoning"] = all + text;
}

Json read_assistant(const Json& content, const std::string& where, ChatTranslation& translation) {
  Json message = {{"role", "assistant"}, {"content", nullptr}};
  Json parts = Json::array();
  Json calls = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string block_at = fmt::format("{}[{}]", where, i);
    const Json& block = content[i];
    const std::string type = type_of(block, block_at);
    if (type == "text") {
      parts.push_back(text_part(block, block_at));
      ignore_others(block, {"type", "text"}, "content", translation);
    } else if (type == "tool_use") {
      const Json input = block.value("input", Json());
      if (!input.is_object()) refuse(block_at + ".input", "must be an object");
      calls.push_back(tool_call(required_string(block, "id", block_at),
                                required_string(block, "name", block_at), dump(input)));
      ignore_others(block, {"type", "id", "name", "input"}, "content", translation);
    } else if (type == "thinking") {
      add_reasoning(message, to_string(block.value("thinking", Json()), block_at + ".thinking",
                                       kMaxTextBytes));
    } else if (type == "redacted_thinking") {
      translation.ignore("content", type);  // encrypted by Anthropic
    } else {
      refuse_block(block_at, type, "text, tool_use, thinking");
    }
  }
  if (!parts.empty()) message["content"] = std::move(parts);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

void read_message(const Json& message, const std::string& where, ChatTranslation& translation,
                  Json& messages) {
  if (!message.is_object()) refuse(where, "must be an object with role and content");
  const Json role = message.value("role", Json());
  const auto given = message.find("content");
  const Json missing;
  const Json& content = given == message.end() ? missing : *given;
  const std::string content_at = where + ".content";
  if (role != "user" && role != "assistant" && role != "system")
    refuse(where + ".role", "must be user, assistant or system");
  if (content.is_string() || role == "system") {
    messages.push_back(
        {{"role", role}, {"content", parts_of_blocks(content, content_at, false, translation)}});
  } else if (!content.is_array()) {
    refuse(content_at, "must be a string or a list of blocks");
  } else if (role == "user") {
    read_user(content, content_at, translation, messages);
  } else {
    messages.push_back(read_assistant(content, content_at, translation));
  }
}

// Anthropic's API continues a final assistant message.
void continue_last(Json& messages, ChatTranslation& translation) {
  const Json& last = messages.back();
  if (last.at("role") != "assistant") return;
  if (last.contains("tool_calls")) refuse("messages", "end with a tool call; send its tool_result");
  translation.chat["add_generation_prompt"] = false;
  translation.chat["continue_final_message"] = true;
}

Json block_schema(const char* type, Json properties, Json required) {
  properties["type"] = {{"type", "string"}, {"enum", {type}}};
  required.push_back("type");
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

Json text_schema() {
  return block_schema("text", {{"text", string_schema(kMaxTextBytes)}}, Json::array({"text"}));
}

Json image_schema() {
  const Json base64 =
      block_schema("base64", {{"media_type", {{"type", "string"}}}, {"data", image_url_schema()}},
                   Json::array({"data"}));
  const Json url = block_schema("url", {{"url", image_url_schema()}}, Json::array({"url"}));
  return block_schema("image", {{"source", {{"anyOf", {base64, url}}}}}, Json::array({"source"}));
}

Json text_or(Json blocks) {
  return {
      {"anyOf", {string_schema(kMaxTextBytes), {{"type", "array"}, {"items", std::move(blocks)}}}}};
}

}  // namespace

void read_system(const Json& value, ChatTranslation& translation, Json& messages) {
  Json parts = parts_of_blocks(value, "system", false, translation);
  if (!joined(parts).empty())
    messages.push_back({{"role", "system"}, {"content", std::move(parts)}});
}

void read_conversation(const Json& value, ChatTranslation& translation, Json& messages) {
  if (!value.is_array() || value.empty())
    refuse("messages", "must be a list with at least one message");
  if (value.size() > kMaxMessages)
    refuse("messages",
           fmt::format("has {} messages; at most {} are allowed", value.size(), kMaxMessages));
  const size_t before = messages.size();
  for (size_t i = 0; i < value.size(); ++i)
    read_message(value[i], fmt::format("messages[{}]", i), translation, messages);
  if (messages.size() == before) refuse("messages", "have no content");
  continue_last(messages, translation);
}

void read_tools(const Json& value, ChatTranslation& translation) {
  if (!value.is_array() || value.size() > kMaxTools)
    refuse("tools", fmt::format("must be a list of at most {} tools", kMaxTools));
  Json tools = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const Json& tool = value[i];
    if (!tool.is_object()) refuse(where, "must be an object with name and input_schema");
    const Json type = tool.value("type", Json());
    if (type.is_null() || type == "custom") {
      if (!tool.contains("input_schema")) refuse(where + ".input_schema", "is missing");
      tools.push_back(function_tool(tool, "input_schema", where));
      ignore_others(tool, {"type", "name", "description", "input_schema", "strict"}, "tools",
                    translation);
    } else {
      translation.ignore("tools", to_string(type, where + ".type", kMaxNameBytes));
    }
  }
  if (!tools.empty()) translation.chat["tools"] = std::move(tools);
}

void read_tool_choice(const Json& value, ChatTranslation& translation) {
  if (!value.is_object()) refuse("tool_choice", "must be an object with a type");
  const Json type = value.value("type", Json());
  if (type == "auto" || type == "none") {
    translation.chat["tool_choice"] = type;
  } else if (type == "any") {
    translation.chat["tool_choice"] = "required";
  } else if (type == "tool") {
    translation.chat["tool_choice"] = {
        {"type", "function"},
        {"function", {{"name", required_string(value, "name", "tool_choice")}}}};
  } else {
    refuse("tool_choice.type", "must be auto, any, tool or none");
  }
  const Json alone = value.value("disable_parallel_tool_use", Json());
  if (!alone.is_null())
    translation.chat["parallel_tool_calls"] =
        !to_bool(alone, "tool_choice.disable_parallel_tool_use");
}

Json system_schema() { return text_or(text_schema()); }

Json conversation_schema() {
  const Json result =
      block_schema("tool_result",
                   {{"tool_use_id", filled_string_schema(kMaxTextBytes)},
                    {"content", text_or({{"anyOf", {text_schema(), image_schema()}}})},
                    {"is_error", boolean_schema()}},
                   Json::array({"tool_use_id"}));
  const Json use = block_schema("tool_use",
                                {{"id", filled_string_schema(kMaxTextBytes)},
                                 {"name", filled_string_schema(kMaxTextBytes)},
                                 {"input", {{"type", "object"}}}},
                                Json::array({"id", "name", "input"}));
  const Json thinking = block_schema("thinking", {{"thinking", string_schema(kMaxTextBytes)}},
                                     Json::array({"thinking"}));
  const auto message = [](Json roles, Json blocks) -> Json {
    return {{"type", "object"},
            {"properties",
             {{"role", {{"type", "string"}, {"enum", std::move(roles)}}},
              {"content", text_or(std::move(blocks))}}},
            {"required", {"role", "content"}}};
  };
  const Json any = {
      {"anyOf",
       {message(Json::array({"user"}), {{"anyOf", {text_schema(), image_schema(), result}}}),
        message(Json::array({"assistant"}), {{"anyOf", {text_schema(), use, thinking}}}),
        message(Json::array({"system"}), text_schema())}}};
  return {{"type", "array"}, {"items", any}, {"minItems", 1}, {"maxItems", kMaxMessages}};
}

Json tools_schema() {
  const Json tool = {{"type", "object"},
                     {"properties",
                      {{"name", filled_string_schema(kMaxTextBytes)},
                       {"description", string_schema(kMaxTextBytes)},
                       {"input_schema", {{"type", "object"}}}}}};
  return {{"type", "array"}, {"items", tool}, {"maxItems", kMaxTools}};
}

Json tool_choice_schema() {
  return {{"type", "object"},
          {"properties",
           {{"type", {{"type", "string"}, {"enum", {"auto", "any", "tool", "none"}}}},
            {"name", filled_string_schema(kMaxTextBytes)},
            {"disable_parallel_tool_use", boolean_schema()}}},
          {"required", Json::array({"type"})}};
}

}  // namespace octavo::api
