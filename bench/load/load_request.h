// load_request.h - one request of a load, and the record of its response. No MLX.
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

// Times are seconds since the start of the run.
struct RequestRecord {
  int prompt_tokens = 0;
  int output_tokens = 0;            // as reported by the server
  bool chunks_counted = false;      // the server sent no usage: output_tokens counts the chunks
  double sent = 0;                  // after waiting for a free slot
  double first = 0;                 // first chunk with choices, even if its text is empty
  double last = 0;                  // the last such chunk
  std::vector<double> chunks = {};  // times of the chunks with tokens
  std::string failure = "not finished";  // empty: success

  bool answered() const { return failure.empty(); }
  double ttft() const { return first - sent; }
  double e2el() const { return last - sent; }
  // Zero for an answer of one token.
  double tpot() const { return output_tokens > 1 ? (last - first) / (output_tokens - 1) : 0; }
};

}  // namespace octavo::bench
