// load_request.h - one request of a load, and what was heard of it. No MLX.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/token_id.h"

namespace octavo::bench {

struct LoadRequest {
  std::variant<std::string, std::vector<TokenId>> prompt = {};
  int prompt_tokens = 0;
  int max_tokens = 1;
};

// Times are seconds since the run began.
struct RequestRecord {
  int prompt_tokens = 0;
  int output_tokens = 0;                 // as the server counts them
  bool chunks_counted = false;           // it sent no usage: output_tokens are the chunks with text
  double sent = 0;                       // behind the wait for a free place
  double first = 0;                      // the first chunk with choices, even if its text is empty
  double last = 0;                       // the last such chunk
  std::vector<double> chunks = {};       // those that brought tokens
  std::string failure = "not finished";  // empty: answered

  bool answered() const { return failure.empty(); }
  double ttft() const { return first - sent; }
  double e2el() const { return last - sent; }
  // Zero for an answer of one token, which has no second one to wait for.
  double tpot() const { return output_tokens > 1 ? (last - first) / (output_tokens - 1) : 0; }
};

}  // namespace octavo::bench
