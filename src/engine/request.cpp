#include "engine/request.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace octavo {
namespace {

void require(bool holds, const char* param, const std::string& message) {
  if (!holds) throw RequestError(400, param, message);
}

void validate_sampling(const SamplingParams& sampling) {
  const auto finite = [](float value) { return std::isfinite(value); };
  require(finite(sampling.temperature) && sampling.temperature >= 0 && sampling.temperature <= 100,
          "temperature", "must be between 0 and 100");
  require(finite(sampling.top_p) && sampling.top_p > 0 && sampling.top_p <= 1, "top_p",
          "must be above 0 and at most 1");
  require(finite(sampling.min_p) && sampling.min_p >= 0 && sampling.min_p <= 1, "min_p",
          "must be between 0 and 1");
  require(sampling.top_k >= -1, "top_k", "must be at least 1, or 0 or -1 for all");
}

}  // namespace

void validate(const Request& request, int max_model_len, int vocab) {
  require(!request.prompt.empty(), "prompt", "is empty");
  require(request.max_tokens >= 1, "max_tokens", "must be at least 1");
  const auto length = static_cast<int64_t>(request.prompt.size());
  require(length < max_model_len, "prompt",
          fmt::format("has {} tokens; at most {} fit the context of {} with one token of answer",
                      length, max_model_len - 1, max_model_len));
  for (TokenId token : request.prompt) {
    require(token >= 0 && token < vocab, "prompt",
            fmt::format("token id {} is outside the vocabulary of {}", token, vocab));
  }
  validate_sampling(request.sampling);
}

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
  }
  return "?";
}

}  // namespace octavo
