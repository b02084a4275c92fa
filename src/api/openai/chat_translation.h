// chat_translation.h - shared code for APIs that are translated to a body of /v1/chat/completions,
// so that templates, tools, grammars and defaults have one implementation.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/field_kinds.h"
#include "api/openai/chat_request.h"
#include "base/error.h"

namespace octavo::api {

// A request while its fields are being read.
struct ChatTranslation {
  Json chat = Json::object();  // the chat body so far
  IgnoredFields ignored = {};  // ignored parts of fields: "tools.cache_control"
  std::vector<ImageSource> images = {};

  // The part of a message that shows the image.
  Json add_image(ImageSource image) {
    api::add_image(images, std::move(image));
    return translated_image(images.size() - 1);
  }

  // Records a hint once. A name from the client is included only if it is short and plain, because
  // it goes into a header.
  void ignore(std::string_view where, std::string_view name);
};

// Fields with the same meaning as the chat field of that name, which checks and documents them.
template <typename Target>
FieldTable<Target> passed_on(std::initializer_list<const char*> names) {
  FieldTable<Target> fields;
  for (const char* name : names) {
    const auto field =
        std::ranges::find(chat_fields(), std::string_view(name), &Field<ChatRequest>::name);
    OCTAVO_CHECK(field != chat_fields().end() && field->use == FieldUse::kUsed);
    fields.push_back(used<Target>(name, field->schema, field->about,
                                  [name](const Json& v, Target& t) { t.chat[name] = v; }));
  }
  return fields;
}

// A chat field and the API's own name for it.
struct FieldName {
  std::string_view chat;
  std::string_view own;
};

// Throws `error`, naming the API's own field.
[[noreturn]] void rethrow_named(const RequestError& error, const std::vector<FieldName>& names);

// Runs prepare_chat on the translation. Errors name the API's own fields.
GenerationJob prepare_translated(const ChatTranslation& translation, IgnoredFields ignored,
                                 const std::vector<FieldName>& names, const ServedModel& model,
                                 const Preparation& preparation);
// The length of the prompt, which may exceed the context.
size_t count_translated(const ChatTranslation& translation, const std::vector<FieldName>& names,
                        const ServedModel& model, const Preparation& preparation);

// Without functions: removes tool_choice, or throws RequestError(400) if it requires a call.
void settle_tool_choice(ChatTranslation& translation);

// A field that must be a non-empty string.
std::string required_string(const Json& object, const char* name, const std::string& where);
// {"type":"text","text"} for a message of the chat.
Json text_part(const Json& object, const std::string& where);
// An entry of the chat's `tools`; `schema` names the field that holds the parameters.
Json function_tool(const Json& tool, const char* schema, const std::string& where);
// {"id","type":"function","function":{"name","arguments"}} of an assistant's message.
Json tool_call(std::string id, std::string name, std::string arguments);

}  // namespace octavo::api
