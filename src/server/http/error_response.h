// error_response.h - an error as an HTTP response; the exchange writes it in the API's format.
#pragma once

#include <string_view>

#include "base/error.h"
#include "server/http/http.h"

namespace octavo::server {

// `param`: the invalid field; empty if none.
HttpResponse error_response(int status, std::string_view message, std::string_view param = {});
HttpResponse error_response(const RequestError& error);

}  // namespace octavo::server
