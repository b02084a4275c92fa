#include "scheduler/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octavo {
namespace {

void require(bool holds, const char* param, const std::string& message) {
  if (!holds) throw RequestError(400, param, message);
}

// False for NaN.
void require_in(float value, float low, float high, const char* param) {
  require(value >= low && value <= high, param,
          fmt::format("must be between {} and {}", low, high));
}

void require_tokens(const std::vector<TokenId>& tokens, int vocab, const char* param) {
  for (TokenId token : tokens) {
    require(token >= 0 && token < vocab, param,
            fmt::format("token id {} is outside the vocabulary of {}", token, vocab));
  }
}

void validate_rules(const SamplingParams& sampling, int vocab) {
  require(sampling.repetition_penalty > 0 && sampling.repetition_penalty <= 100,
          "repetition_penalty", "must be above 0 and at most 100");
  require_in(sampling.presence_penalty, -2, 2, "presence_penalty");
  require_in(sampling.frequency_penalty, -2, 2, "frequency_penalty");
  std::vector<TokenId> biased;
  for (const auto& [token, bias] : sampling.logit_bias) {
    require_in(bias, -100, 100, "logit_bias");
    biased.push_back(token);
  }
  require_tokens(biased, vocab, "logit_bias");
  std::ranges::sort(biased);
  const auto twice = std::ranges::adjacent_find(biased);
  require(twice == biased.end(), "logit_bias",
          fmt::format("names token id {} twice", twice == biased.end() ? 0 : *twice));
  for (const auto& word : sampling.bad_words) {
    require(!word.empty(), "bad_words", "contains an empty word");
    require_tokens(word, vocab, "bad_words");
  }
  require_tokens(sampling.allowed_token_ids, vocab, "allowed_token_ids");
}

void validate_sampling(const SamplingParams& sampling, const RequestLimits& limits) {
  require_in(sampling.temperature, 0, 100, "temperature");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", "must be above 0 and at most 1");
  require_in(sampling.min_p, 0, 1, "min_p");
  require(sampling.top_k >= -1, "top_k", "must be at least 1, or 0 or -1 for all");
  const int most = std::min(limits.max_logprobs, limits.vocab);
  const auto count = [&](int value, const char* param) {
    require(value >= -1 && value <= most, param, fmt::format("must be between 0 and {}", most));
  };
  count(sampling.logprobs, "logprobs");
  count(sampling.prompt_logprobs, "prompt_logprobs");
  validate_rules(sampling, limits.vocab);
}

void validate_images(const Request& request, const RequestLimits& limits) {
  if (request.images.empty()) return;
  require(limits.max_image_tokens > 0, "", "this model takes no images");
  require(request.pooling == Pooling::kNone, "", "embeddings of images are not supported");
  int64_t end = 0;
  for (const PromptImage& image : request.images) {
    const int64_t tokens = int64_t{image.grid_h} * image.grid_w;
    require(image.grid_h >= 1 && image.grid_w >= 1 && tokens <= limits.max_image_tokens, "",
            fmt::format("an image has {} tokens; at most {} are supported", tokens,
                        limits.max_image_tokens));
    require(image.offset >= end && !image.identifier.empty(), "",
            "an image is not in the prompt's order");
    end = image.end();
  }
  require(end <= static_cast<int64_t>(request.prompt.size()), "",
          "an image is longer than the prompt");
}

// A pooling request draws no token, so its prompt may fill the context.
void validate_pooling(const Request& request, const RequestLimits& limits) {
  require(request.n == 1, "n", "must be 1 for embeddings");
  require(request.resumed.empty(), "resume_token_ids", "cannot be combined with embeddings");
  const auto length = static_cast<int64_t>(request.prompt.size());
  require(length <= limits.max_model_len, "prompt",
          fmt::format("has {} tokens; at most {} fit the context", length, limits.max_model_len));
  require(limits.max_whole_prompt == 0 || length <= limits.max_whole_prompt, "prompt",
          fmt::format("has {} tokens; this model computes a whole text in one step, and "
                      "--max-num-batched-tokens limits a step to {} tokens",
                      length, limits.max_whole_prompt));
  require(request.second_text == 0 || (request.second_text > 0 && request.second_text < length),
          "prompt", "the second text of a pair must begin within the prompt, after the first one");
  require_tokens(request.prompt, limits.vocab, "prompt");
}

// Every choice that runs must have space for at least one more token.
void validate_resumed(const Request& request, const RequestLimits& limits) {
  if (request.resumed.empty()) return;
  const char* param = "resume_token_ids";
  require(request.resumed.size() == static_cast<size_t>(request.n), param,
          fmt::format("has {} lists for {} choices", request.resumed.size(), request.n));
  const auto room = limits.max_model_len - static_cast<int64_t>(request.prompt.size());
  const int64_t most = std::min<int64_t>(request.max_tokens, room);
  bool runs = false;
  for (const ResumedOutput& output : request.resumed) {
    const auto length = static_cast<int64_t>(output.tokens.size());
    require(length < most || (output.finished && length == most), param,
            fmt::format("has {} tokens for a choice; at most {} leave one to generate", length,
                        most - 1));
    require_tokens(output.tokens, limits.vocab, param);
    runs |= !output.finished;
  }
  require(runs, param, "contains only choices that have ended");
}

}  // namespace

bool SamplingParams::has_rules() const {
  return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0 ||
         !logit_bias.empty() || !bad_words.empty() || !allowed_token_ids.empty();
}

void validate(const Request& request, const RequestLimits& limits) {
  require(!request.prompt.empty(), "prompt", "is empty");
  validate_images(request, limits);
  if (request.pooling != Pooling::kNone) return validate_pooling(request, limits);
  require(limits.draws && limits.max_whole_prompt == 0, "",
          "this model was loaded for embeddings and generates no tokens");
  require(request.max_tokens >= 1, "max_tokens", "must be at least 1");
  require(request.min_tokens >= 0 && request.min_tokens <= request.max_tokens, "min_tokens",
          "must be between 0 and max_tokens");
  require(request.n >= 1 && request.n <= limits.max_choices, "n",
          fmt::format("must be between 1 and {}", limits.max_choices));
  const auto length = static_cast<int64_t>(request.prompt.size());
  require(length < limits.max_model_len, "prompt",
          fmt::format("has {} tokens; at most {} fit the context of {}, which must also hold one "
                      "generated token",
                      length, limits.max_model_len - 1, limits.max_model_len));
  require_tokens(request.prompt, limits.vocab, "prompt");
  require_tokens(request.stop_token_ids, limits.vocab, "stop_token_ids");
  validate_sampling(request.sampling, limits);
  validate_resumed(request, limits);
}

}  // namespace octavo
