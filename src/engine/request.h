// request.h - what the engine is asked for and what it gives back: token ids only. No MLX.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/token_id.h"

namespace octavo {

struct SamplingParams {
  float temperature = 0;
  float top_p = 1;
  float min_p = 0;
  int top_k = 0;  // 0 or -1: all
  uint64_t seed = 0;
};

struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  int max_tokens = 256;
  bool ignore_eos = false;
  // If there is one: asked before each step, true ends the request.
  std::function<bool()> cancelled = nullptr;
};

// Throws RequestError (400) naming the parameter. `max_model_len` and `vocab` bound the prompt.
void validate(const Request& request, int max_model_len, int vocab);

enum class FinishReason : uint8_t { kStop, kLength, kAbort };

std::string_view name_of(FinishReason reason);

struct Generation {
  std::vector<TokenId> tokens;  // a stop token included; empty when cancelled before the first
  FinishReason finish_reason = FinishReason::kLength;
  int cached_tokens = 0;  // prompt tokens whose K and V were already there
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

}  // namespace octavo
