// http_call.h - sends one HTTP request and waits for the reply. Any thread. No MLX.
#pragma once

#include <string>

#include "bench/load/http_request.h"
#include "bench/load/server_url.h"

namespace octavo::bench {

struct HttpReply {
  int status = 0;  // 0: no reply
  std::string body = {};
  std::string error = {};  // why the reply is incomplete; empty: it is complete

  bool ok() const { return status == 200 && error.empty(); }
};

// Throws SetupError if the host name cannot be resolved.
HttpReply http_call(const ServerUrl& url, const HttpRequest& request);

// Why a reply is not ok, in one line: "HTTP 404: no such path" or "connection refused".
std::string reason_of(const HttpReply& reply);

}  // namespace octavo::bench
