// messages_input.h - Anthropic's system, messages and tools as a chat has them.
#pragma once

#include "api/openai/chat_translation.h"

namespace octavo::api {

// A string or a list of text blocks to one message of role system; none when it says nothing.
void read_system(const Json& value, ChatTranslation& translation, Json& messages);

// Appends to `messages`. Results of tools become messages of their own, thinking the reasoning of
// the message it stands in. A last message of the assistant is left open, to be continued. Throws
// RequestError(400) naming the block that cannot be shown to the model.
void read_conversation(const Json& value, ChatTranslation& translation, Json& messages);

// Tools that the client runs. Those of Anthropic's own servers and of its models' training are
// noted as ignored: agents cannot leave them out, and the model has never heard of them.
void read_tools(const Json& value, ChatTranslation& translation);
void read_tool_choice(const Json& value, ChatTranslation& translation);

// Of OpenAPI.
Json system_schema();
Json conversation_schema();
Json tools_schema();
Json tool_choice_schema();

}  // namespace octavo::api
