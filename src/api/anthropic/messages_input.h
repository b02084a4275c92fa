// messages_input.h - translates Anthropic's system, messages and tools to a chat.
#pragma once

#include "api/openai/chat_translation.h"

namespace octavo::api {

// A string or a list of text blocks becomes one system message, or none if empty.
void read_system(const Json& value, ChatTranslation& translation, Json& messages);

// Appends to `messages`. Tool results become separate messages; thinking becomes the reasoning of
// its message. A final assistant message is continued. Throws RequestError(400) naming the
// unsupported block.
void read_conversation(const Json& value, ChatTranslation& translation, Json& messages);

// Tools that the client runs. Anthropic's server-side and built-in tools are recorded as ignored:
// agents always send them, and the model does not know them.
void read_tools(const Json& value, ChatTranslation& translation);
void read_tool_choice(const Json& value, ChatTranslation& translation);

// For OpenAPI.
Json system_schema();
Json conversation_schema();
Json tools_schema();
Json tool_choice_schema();

}  // namespace octavo::api
