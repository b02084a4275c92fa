// request_body.h - the JSON body of a completion or chat completion request. No MLX.
#pragma once

#include <string>

#include "bench/load/load_request.h"

namespace octavo::bench {

struct BodyOptions {
  std::string model = {};
  bool chat = false;  // chat completions, which require text prompts
  bool ignore_eos = false;
  double temperature = 0;
};

std::string request_body(const LoadRequest& request, const BodyOptions& options);

}  // namespace octavo::bench
