// logprobs.h (cpu) - log probabilities of one row's tokens. No MLX.
#pragma once

#include <cstdint>
#include <span>

#include "base/token_id.h"

namespace octavo::cpu {

// One row of Logprobs (sampling.h): the token's own entry, then the most likely ones.
struct LogprobsRow {
  std::span<float> values;
  std::span<int32_t> ids;  // as long as values
  int32_t* rank = nullptr;
};

// Fills the first 1 + count entries; the others get id -1 and minus infinity. A row whose largest
// logit is not finite has no distribution: its values are minus infinity.
void write_logprobs(std::span<const float> logits, TokenId token, int count,
                    const LogprobsRow& out);

// What a row's logprobs are computed from, if a device has found it.
struct FoundLogprobs {
  TokenId token = 0;
  float logit = 0;    // the token's
  float largest = 0;  // of the row
  std::span<const float>
      sums;  // by block of kLogitBlock logits: the weights of `weigh`, scale log2(e)
  std::span<const int32_t> above;  // numbers of logits above the token's: the rank is 1 + their sum
  std::span<const int32_t> ids;    // the most likely tokens
  std::span<const float> logits;   // theirs
};

// Fills the first 1 + ids.size() entries of a row without entries. Any numbers are valid.
void finish_logprobs(const FoundLogprobs& found, const LogprobsRow& out);

// Writes no entries, and rank 0.
void write_no_logprobs(const LogprobsRow& out);

}  // namespace octavo::cpu
