// request_id.h - request ids for logs and responses.
#pragma once

#include <string>
#include <string_view>

namespace octavo::api {

// 32 random hex digits.
std::string fresh_request_id();

// Returns `sent`, the client's X-Request-Id, if it is short and plain; otherwise a fresh id.
std::string request_id_of(std::string_view sent);

}  // namespace octavo::api
