// json_values.h - checked values of a request body. Every function throws RequestError(400) naming
// the field and the expected value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "base/token_id.h"

namespace octavo::api {

[[noreturn]] void refuse(const std::string& field, const std::string& message);

bool to_bool(const Json& value, const std::string& field);
// A whole number within the bounds; 5.0 counts as one.
int64_t to_integer(const Json& value, const std::string& field, int64_t low, int64_t high);
int to_int(const Json& value, const std::string& field, int low, int high);
float to_number(const Json& value, const std::string& field, double low, double high);
std::string to_string(const Json& value, const std::string& field, size_t max_bytes);
std::vector<TokenId> to_tokens(const Json& value, const std::string& field);
// Returns whether the value is `second`; it must be one of the two.
bool to_choice(const Json& value, const std::string& field, const char* first, const char* second);

// The value, shortened for error messages.
std::string shown(const Json& value);

}  // namespace octavo::api
