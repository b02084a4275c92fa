// request.h - a request to the engine, in token ids. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "cache/cache_namespace.h"
#include "kernels/types/pooling_plan.h"
#include "scheduler/adapter.h"
#include "scheduler/constraint.h"
#include "scheduler/prompt_image.h"

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
  int logprobs = -1;                            // -1: none; otherwise the number of top tokens
  int prompt_logprobs = -1;

  // True if logits are modified before the draw.
  bool has_rules() const;
};

// The output of a choice that an earlier attempt has generated.
struct ResumedOutput {
  std::vector<TokenId> tokens = {};
  bool finished = false;  // the choice has ended and does not run
  // With a constraint: its state after `tokens`, for this choice alone, so that the engine's threads
  // need not follow them. Null: they do.
  std::shared_ptr<ConstraintState> state = nullptr;
};

struct Request {
  std::vector<TokenId> prompt;
  // > 0: the index of the first token of the second text, whose Batch::token_types are 1.
  int second_text = 0;
  // In the prompt's order. Its placeholder tokens are in `prompt`.
  std::vector<PromptImage> images = {};
  SamplingParams sampling = {};
  int n = 1;             // choices
  int max_tokens = 256;  // per choice; limited by the context
  int min_tokens = 0;
  std::vector<TokenId> stop_token_ids = {};  // in addition to the model's
  bool ignore_eos = false;                   // ignore the model's own stop tokens
  int priority = 0;                          // lower first; used by --scheduling-policy priority
  // Runs after all other requests, whatever their priority, and takes only rows of a step that
  // hardly delay them.
  bool background = false;
  std::string cache_salt = {};  // requests with different salts share no cached prefix
  // Cache reports refer only to prompts of the same owner, and owners take turns in the queue.
  std::string owner = {};
  // Engine requests of one call, such as the prompts of a batch, take turns as one. 0: a call of
  // its own.
  uint64_t call = 0;
  CacheNamespace cache_namespace = {};
  std::shared_ptr<const Adapter> adapter = nullptr;  // null: the base model
  // Empty, or one per choice: the output continues after these tokens, with the bits it would have
  // had without the interruption. They count as output, but are not reported again.
  std::vector<ResumedOutput> resumed = {};
  bool hash_logits = false;  // return a hash of the logits with every token
  std::shared_ptr<const Constraint> constraint = nullptr;  // null: unconstrained
  // Unless kNone, no token is drawn and the result is Update::embedding. Sampling, lengths and
  // stops are ignored, and n must be 1.
  Pooling pooling = Pooling::kNone;
};

struct RequestLimits {
  int max_model_len = 0;
  int vocab = 0;
  int max_choices = 64;
  int max_logprobs = 20;
  bool draws = true;         // false: an embedding model; requests must pool
  int max_image_tokens = 0;  // 0: no images
  int max_whole_prompt = 0;  // > 0: prompts run in one step, and are at most this long
};

// Throws RequestError (400) that names the parameter and the allowed values.
void validate(const Request& request, const RequestLimits& limits);

}  // namespace octavo
