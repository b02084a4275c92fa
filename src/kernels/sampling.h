// sampling.h - draws tokens on the device, with log probabilities if requested.
#pragma once

#include <optional>
#include <vector>

#include "kernels/logprobs.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/row_sampling.h"

namespace octavo {

struct Drawn {
  mx::array tokens;                       // [R] int32; does not wait for what follows
  std::optional<Logprobs> logprobs = {};  // if a row requests them; K is the largest request
  std::optional<mx::array> hashes = {};   // [R] uint64, if requested: XXH64 of a row's logits, or 0
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

// Replaces tokens that the host does not know yet.
//   tokens:  [T] int32, as known to the host
//   sources: [T] int32, the entry of `previous` that replaces the row's token, or -1 for none
//   returns  [T] int32
mx::array place_tokens(const mx::array& tokens, const mx::array& sources,
                       const mx::array& previous);

}  // namespace octavo
