// chat_input.h - prepares the messages of a request for the chat template.
#pragma once

#include "api/fields/json_values.h"

namespace octavo::api {

// Checks roles and contents, joins text parts, and maps the role developer to system. Throws
// RequestError(400) naming the message.
Json read_messages(const Json& messages);

// For OpenAPI.
Json messages_schema();

}  // namespace octavo::api
