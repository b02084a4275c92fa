// sampling.h (cpu) - draws one row's token. No MLX.
#pragma once

#include <span>

#include "kernels/types/row_sampling.h"

namespace octavo::cpu {

// Waits for the mask. `previous`: the tokens that sampling.history.pending indexes. If the rules
// ban every token, returns the most likely one by the unmodified logits among those the mask
// allows.
int32_t sample_row(std::span<const float> logits, const RowSampling& sampling,
                   std::span<const TokenId> previous = {});

}  // namespace octavo::cpu
