// decode_row.h (reference) - any weight row, as its file stores it, as float32. No MLX.
#pragma once

#include "kernels/types/weight_format.h"

namespace octavo::reference {

// Writes row `row` of `weight` to out[0..cols).
void decode_row(const WeightView& weight, int64_t row, float* out);

}  // namespace octavo::reference
