// access_log.h - one log line per request.
#pragma once

#include <chrono>

#include "server/http/http_exchange.h"

namespace octavo::server {

// `left`: the client disconnected early.
void log_access(const HttpExchange& exchange, std::chrono::steady_clock::duration took, bool left);

}  // namespace octavo::server
