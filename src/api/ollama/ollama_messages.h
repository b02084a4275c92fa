// ollama_messages.h - translates Ollama's messages to those of a chat.
#pragma once

#include "api/ollama/ollama_request.h"

namespace octavo::api {

// Sets the chat's messages. A final assistant message is continued. Throws RequestError(400).
void read_ollama_messages(const Json& value, ChatTranslation& translation);

// Images are refused by name; an empty list of them is not.
void refuse_images(const Json& images, const std::string& where);

// For OpenAPI.
Json ollama_messages_schema();

}  // namespace octavo::api
