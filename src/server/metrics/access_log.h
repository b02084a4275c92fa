// access_log.h - one line per answered request.
#pragma once

#include <chrono>

#include "server/http/http_exchange.h"

namespace octavo::server {

// `left`: the client did not wait for the end.
void log_access(const HttpExchange& exchange, std::chrono::steady_clock::duration took, bool left);

}  // namespace octavo::server
