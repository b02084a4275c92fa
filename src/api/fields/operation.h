// operation.h - OpenAPI operations.
#pragma once

#include "api/fields/json_text.h"

namespace octavo::api {

// {"summary","responses":{"200"}} with the schema of the response.
Json operation(const char* summary, Json answer_schema);
// The same with a JSON body.
Json json_operation(const char* summary, Json body_schema, Json answer_schema);

}  // namespace octavo::api
