// keep_alive.h - the field keep_alive: how long a model stays loaded after a request.
#pragma once

#include <chrono>

#include "api/fields/json_values.h"

namespace octavo::api {

// A number of seconds, or text in Go's form: "5m", "1h30m", "0", "-1". Negative: forever. Throws
// RequestError(400).
std::chrono::milliseconds read_keep_alive(const Json& value);
// For OpenAPI.
Json keep_alive_schema();

}  // namespace octavo::api
