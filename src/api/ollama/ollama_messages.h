// ollama_messages.h - translates Ollama's messages to those of a chat.
#pragma once

#include "api/ollama/ollama_request.h"

namespace octavo::api {

// Sets the chat's messages. A final assistant message is continued. Throws RequestError(400).
void read_ollama_messages(const Json& value, ChatTranslation& translation);

// A message's text, or its parts if it has images: a list of files in base64, which are shown before
// the text.
Json ollama_content(const Json& images, const std::string& where, std::string text,
                    ChatTranslation& translation);

// For OpenAPI.
Json ollama_messages_schema();
Json ollama_images_schema();

}  // namespace octavo::api
