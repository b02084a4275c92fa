// update.h - progress of one choice of a request, as the engine reports it. No MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "scheduler/cache_report.h"

namespace octavo {

using RequestId = uint64_t;

enum class FinishReason : uint8_t { kStop, kLength, kAbort, kError };

std::string_view name_of(FinishReason reason);

struct TokenLogprobs {
  TokenId token = 0;
  float logprob = 0;
  int rank = 0;  // 1: the likeliest
  std::vector<std::pair<TokenId, float>> top = {};
};

struct Update {
  RequestId request = 0;
  int choice = 0;
  std::vector<TokenId> tokens = {};          // new tokens, including a stop token
  std::vector<TokenLogprobs> logprobs = {};  // one per new token, if requested
  std::vector<uint64_t> hashes = {};         // one per new token, if requested
  // Tokens from the prefix cache; set with the choice's first token or its embedding.
  std::optional<int> cached_tokens = {};
  // Set with the first step of a request's first choice, which may be long before its first token.
  std::shared_ptr<const CacheReport> cache = nullptr;
  std::chrono::steady_clock::time_point scheduled =
      {};  // set with cached_tokens: when the choice was admitted
  std::vector<TokenLogprobs> prompt_logprobs = {};  // of prompt tokens from the second on, in order
  std::vector<float> embedding = {};  // of a pooling request, with its `finish`; not normalised
  std::optional<FinishReason> finish = {};
  std::optional<TokenId> stop_token = {};  // that ended it, unless it is one of the model's own
  std::string error = {};                  // with FinishReason::kError
  bool over_limit = false;                 // the error: the request's own constraint takes too much
};

}  // namespace octavo
