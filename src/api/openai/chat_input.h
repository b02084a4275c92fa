// chat_input.h - a conversation as clients send it, made ready for a chat template.
#pragma once

#include "api/fields/json_values.h"

namespace octavo::api {

// Checks roles and contents, joins parts of text, and takes `developer` for `system`. Throws
// RequestError(400) naming the message.
Json read_messages(const Json& messages);

// Of OpenAPI.
Json messages_schema();

}  // namespace octavo::api
