// request_timeout.h - the header x-request-timeout: seconds after which a request ends with 504.
#pragma once

#include <chrono>

#include "base/error.h"
#include "server/http_context.h"

namespace octavo::server {

inline constexpr const char* kTimeoutHeader = "x-request-timeout";

// `arrival` plus the seconds in the header; max() without one. Throws RequestError(400) unless these
// are a positive number.
std::chrono::steady_clock::time_point deadline_of(const HttpRequest& request,
                                                  std::chrono::steady_clock::time_point arrival);

// Throws RequestError(504) if the deadline of the request has passed; then counts it, and notes it in
// the access log.
void check_deadline(HttpContext& context, Exchange& exchange);

}  // namespace octavo::server
