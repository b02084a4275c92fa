// sampling.h (cpu) - one row's token. No MLX.
#pragma once

#include <span>

#include "kernels/types/row_sampling.h"

namespace octavo::cpu {

// `previous`: the tokens sampling.history.pending is an entry of. If the rules ban every token, the
// likeliest by the logits as they are among those that the mask allows. Waits for the mask.
int32_t sample_row(std::span<const float> logits, const RowSampling& sampling,
                   std::span<const TokenId> previous = {});

}  // namespace octavo::cpu
