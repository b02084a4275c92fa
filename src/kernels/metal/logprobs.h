// logprobs.h (metal) - launches logprobs.metal.
#pragma once

#include <span>

#include "kernels/metal/encoder.h"
#include "kernels/metal/logprobs_params.h"

namespace octavo::metal {

// Finds what cpu::finish_logprobs() needs, of N rows. The outputs are allocated. K is at least 1 and at
// least the largest count.
struct LogprobsCall {
  mx::array logits;              // [R, vocab] float32, vocab <= kMostLogits
  mx::array tokens;              // [R] int32
  std::span<const RowTop> rows;  // N entries, with counts up to kMostTopTokens and vocab
  mx::array ends;                // [N, 2] float32: the token's logit, the largest
  mx::array sums;                // [N, blocks_of(vocab)] float32: of weights
  mx::array above;               // [N, blocks_of(vocab)] int32: logits above the token's
  mx::array top_ids;             // [N, K] int32; columns from the row's count on are not written
  mx::array top_logits;          // [N, K] float32
};
void find_logprobs(const LogprobsCall& call, Encoder& encoder);

}  // namespace octavo::metal
