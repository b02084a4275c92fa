// http_call.h - one HTTP request that is waited for. Any thread. No MLX.
#pragma once

#include <string>

#include "bench/load/http_ask.h"
#include "bench/load/server_url.h"

namespace octavo::bench {

struct HttpReply {
  int status = 0;  // 0: no answer came
  std::string body = {};
  std::string error = {};  // why the answer is not whole; empty: it is

  bool ok() const { return status == 200 && error.empty(); }
};

// Throws SetupError when the host has no address.
HttpReply http_call(const ServerUrl& url, const HttpAsk& ask);

// Why a reply is not ok, in one line: "HTTP 404: no such path" or "connection refused".
std::string reason_of(const HttpReply& reply);

}  // namespace octavo::bench
