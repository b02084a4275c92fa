// response_schema.h - OpenAPI schemas of generated answers.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

Json completion_schema();
Json chat_completion_schema();

// An operation whose answer comes whole, or as server-sent events when the body asks for a stream.
Json generation_operation(const char* summary, Json body_schema, Json answer_schema);

}  // namespace octavo::api
