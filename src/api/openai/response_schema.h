// response_schema.h - OpenAPI schemas of answers.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

// What all answers with a list have in common. `list`: the name of the list, whose entries are
// `item`. `required`: the members that are always there.
Json list_answer_schema(const char* list, Json item, Json usage, Json required);

Json completion_schema();
Json chat_completion_schema();

// An operation whose response is JSON, or server-sent events if the body sets stream.
Json generation_operation(const char* summary, Json body_schema, Json answer_schema);

}  // namespace octavo::api
