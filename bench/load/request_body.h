// request_body.h - a request as the JSON of OpenAI's completions or chat completions. No MLX.
#pragma once

#include <string>

#include "bench/load/load_request.h"

namespace octavo::bench {

struct BodyOptions {
  std::string model = {};
  bool chat = false;  // chat completions, which take text only
  bool ignore_eos = false;
  double temperature = 0;
};

std::string request_body(const LoadRequest& request, const BodyOptions& options);

}  // namespace octavo::bench
