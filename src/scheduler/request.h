// request.h - what the engine is asked for: token ids only. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "kernels/types/pooling_plan.h"
#include "scheduler/constraint.h"

namespace octavo {

// Names and meanings are vLLM's.
struct SamplingParams {
  float temperature = 0;
  float top_p = 1;
  float min_p = 0;
  int top_k = 0;  // 0 or -1: all
  uint64_t seed = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  std::vector<std::vector<TokenId>> bad_words = {};
  std::vector<TokenId> allowed_token_ids = {};  // empty: all
  int logprobs = -1;                            // -1: none; else this many of the likeliest
  int prompt_logprobs = -1;

  // Whether a row's logits are changed before the draw.
  bool has_rules() const;
};

struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling = {};
  int n = 1;             // answers
  int max_tokens = 256;  // of each; less where the context ends
  int min_tokens = 0;
  std::vector<TokenId> stop_token_ids = {};  // besides the model's own
  bool ignore_eos = false;                   // go on behind the model's own
  int priority = 0;                          // lower first, with --scheduling-policy priority
  std::string cache_salt = {};               // requests with different salts share no cached prefix
  std::string owner = {};    // only texts of the same owner are told of when a prefix is not cached
  bool hash_logits = false;  // a hash of the full logits with every token
  std::shared_ptr<const Constraint> constraint = nullptr;  // none: it may say anything
  // Other than kNone: no token is drawn; the answer is Update::embedding. Sampling, lengths and
  // stops have no meaning then, and n is 1.
  Pooling pooling = Pooling::kNone;
};

struct RequestLimits {
  int max_model_len = 0;
  int vocab = 0;
  int max_choices = 64;
  int max_logprobs = 20;
  bool draws = true;  // false: the engine has no vocabulary to draw from and only pools
};

// Throws RequestError (400) naming the parameter and what would be right.
void validate(const Request& request, const RequestLimits& limits);

}  // namespace octavo
