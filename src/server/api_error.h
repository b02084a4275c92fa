// api_error.h - errors as the ecosystem's clients expect them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "server/http.h"

namespace octavo::server {

// {"error":{"message","type","param","code"}}; `param` empty: null.
std::string error_body(int status, std::string_view message, std::string_view param = {});
HttpResponse error_response(int status, std::string_view message, std::string_view param = {});
HttpResponse error_response(const RequestError& error);

// "BadRequestError" for 400 and so on.
std::string_view error_type(int status);

}  // namespace octavo::server
