// logprobs.h - log probabilities of tokens, from the model's logits.
#pragma once

#include <span>
#include <vector>

#include "base/token_id.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// Natural logarithms of the model's own probabilities (before rules and temperature). Column 0 is
// the row's token, columns 1..K the most likely ones in descending order, the lower id first on a
// tie. A row that requests fewer has id -1 and minus infinity in the others; one that requests none
// also has rank 0.
struct Logprobs {
  mx::array values;  // [R, 1 + K] float32
  mx::array ids;     // [R, 1 + K] int32
  mx::array ranks;   // [R] int32: 1 + the number of likelier tokens
};

// Every device gives the same bits.
//   logits: [R, vocab] float32, contiguous
//   tokens: [R] int32, each below vocab
//   counts: R entries, the row's most likely tokens to return, at most vocab; -1: the row has no
//           logprobs. K is the largest and at least 0.
Logprobs logprobs_of(const mx::array& logits, const mx::array& tokens, std::vector<int> counts);

// The same for tokens that the host knows, with `count` most likely ones in every row.
Logprobs logprobs_of(const mx::array& logits, std::span<const TokenId> tokens, int count);

}  // namespace octavo
