// decode_row.h (reference) - decodes a weight row of any file format to float32. No MLX.
#pragma once

#include "kernels/types/weight_format.h"

namespace octavo::reference {

// Writes row `row` of `weight` to out[0..cols).
void decode_row(const WeightView& weight, int64_t row, float* out);

}  // namespace octavo::reference
