// responses_input.h - translates the input items, tools and tool_choice of /v1/responses to a chat.
#pragma once

#include "api/openai/chat_translation.h"

namespace octavo::api {

// A string, or a list of items, as a list of items.
Json items_of(const Json& input);

// The messages of the chat: `instructions` (a string or null), items of earlier responses and those
// of this request. Consecutive assistant reasoning, text and tool calls become one message. Throws
// RequestError(400) naming the unsupported item of `input`.
Json conversation_of(const Json& instructions, const Json& earlier, const Json& input,
                     ChatTranslation& translation);

// Functions only. Tools of other types are recorded as ignored, since agents always send them.
void read_response_tools(const Json& value, ChatTranslation& translation);
// Call after read_response_tools: allowed_tools removes some of them.
void read_response_tool_choice(const Json& value, ChatTranslation& translation);

// Encodes reasoning for a client that stores it between requests, and decodes it. Not encrypted:
// the client receives the text as well. Decoding returns nullopt for foreign content.
std::string packed_reasoning(std::string_view text);
std::optional<std::string> unpacked_reasoning(std::string_view packed);

// For OpenAPI.
Json input_schema();

}  // namespace octavo::api
