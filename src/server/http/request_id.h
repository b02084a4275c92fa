// request_id.h - the name a request has in logs and answers.
#pragma once

#include <string>

#include "server/http/http.h"

namespace octavo::server {

// 32 random hex digits.
std::string fresh_request_id();

// The client's X-Request-Id if it is short and plain, else a fresh one.
std::string request_id_of(const HttpRequest& request);

}  // namespace octavo::server
