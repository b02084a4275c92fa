// chat_translation.h - what the APIs have in common that are translated into a body of
// /v1/chat/completions, so that templates, tools, grammars and defaults are one implementation.
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

// A call while its fields are read.
struct ChatTranslation {
  Json chat = Json::object();  // the body so far
  IgnoredFields ignored = {};  // what was left out beyond whole fields: "tools.cache_control"

  // Notes a hint once. A part that came from the client is named only if it is plain and short: it
  // will stand in a header.
  void ignore(std::string_view where, std::string_view name);
};

// Fields that mean what the chat's do: read, bounded and described there.
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

// A field of the chat, and what the API calls it.
struct FieldName {
  std::string_view chat;
  std::string_view own;
};

// What prepare_chat makes of the translation. A refusal names the API's own fields.
GenerationJob prepare_translated(const ChatTranslation& translation, IgnoredFields ignored,
                                 const std::vector<FieldName>& names, const ServedModel& model);
// The length of its prompt, which may be longer than the context.
size_t count_translated(const ChatTranslation& translation, const std::vector<FieldName>& names,
                        const ServedModel& model);

// Takes back a tool_choice that says nothing, as there are no functions to call. Throws
// RequestError(400) for one that wants a call.
void settle_tool_choice(ChatTranslation& translation);

// The object's field, checked to be a string that says something.
std::string required_string(const Json& object, const char* name, const std::string& where);
// {"type":"text","text"} for a message of the chat.
Json text_part(const Json& object, const std::string& where);
// A function as the chat's `tools` has it; `schema` is the name of the field with its parameters.
Json function_tool(const Json& tool, const char* schema, const std::string& where);
// {"id","type":"function","function":{"name","arguments"}} of an assistant's message.
Json tool_call(std::string id, std::string name, std::string arguments);

}  // namespace octavo::api
