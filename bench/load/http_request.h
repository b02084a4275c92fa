// http_request.h - an HTTP request. No MLX.
#pragma once

#include <string>

namespace octavo::bench {

struct HttpRequest {
  std::string path = "/";
  std::string json = {};  // sent as POST; empty: GET
  std::string api_key = {};
  double timeout_seconds = 600;  // for the whole exchange
};

}  // namespace octavo::bench
