// sampling.h - draws tokens on the device and computes their log probabilities.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/runtime/mlx.h"
#include "kernels/types/row_sampling.h"

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

struct Drawn {
  mx::array tokens;                  // [R] int32
  std::optional<Logprobs> logprobs;  // if a row requests them; K is the largest request
  std::optional<mx::array> hashes;   // [R] uint64, if a row requests it: XXH64 of its logits, or 0
};

// A row's results depend only on its own logits, RowSampling and history. NaN counts as minus
// infinity. If a row's rules ban every token, the result is the token with the largest original
// logit among those its mask allows. Sampling waits for masks that are not ready yet.
//   logits:   [R, vocab] float32, contiguous
//   rows:     R entries
//   previous: [P] int32, the tokens sampled by the previous step; required if a row's
//             history.pending >= 0
Drawn sample(const mx::array& logits, std::vector<RowSampling> rows,
             const std::optional<mx::array>& previous = std::nullopt);

// Log probabilities of given tokens. tokens: R entries; 0 <= count.
Logprobs logprobs_of(const mx::array& logits, std::span<const TokenId> tokens, int count);

// Replaces tokens that the host does not know yet.
//   tokens:  [T] int32, as known to the host
//   sources: [T] int32, the entry of `previous` that replaces the row's token, or -1 for none
//   returns  [T] int32
mx::array place_tokens(const mx::array& tokens, const mx::array& sources,
                       const mx::array& previous);

}  // namespace octavo
