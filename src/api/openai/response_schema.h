// response_schema.h - OpenAPI schemas of generated output.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

Json completion_schema();
Json chat_completion_schema();

// An operation whose response is JSON, or server-sent events if the body sets stream.
Json generation_operation(const char* summary, Json body_schema, Json answer_schema);

}  // namespace octavo::api
