// responses_input.h - the input items, tools and choices of /v1/responses as a chat has them.
#pragma once

#include "api/openai/chat_translation.h"

namespace octavo::api {

// A string, or a list of items, as a list of items.
Json items_of(const Json& input);

// Messages of a chat: `instructions` (a string or null), items of earlier calls and those of this
// one. An assistant's reasoning, words and calls that follow each other are one message. Throws
// RequestError(400) naming the item of `input` that cannot be shown to the model.
Json conversation_of(const Json& instructions, const Json& earlier, const Json& input,
                     ChatTranslation& translation);

// Functions. Tools of other types are noted as ignored: agents cannot leave them out.
void read_response_tools(const Json& value, ChatTranslation& translation);
// Behind the tools: a choice may leave some of them out.
void read_response_tool_choice(const Json& value, ChatTranslation& translation);

// Reasoning for a client that keeps it between two calls, and back. It is not secret: the client
// was sent its text, too. Nothing when it is not of our making.
std::string packed_reasoning(std::string_view text);
std::optional<std::string> unpacked_reasoning(std::string_view packed);

// Of OpenAPI.
Json input_schema();

}  // namespace octavo::api
