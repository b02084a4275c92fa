// decode_row.h - any stored weight row as float32.
#pragma once

#include "kernels/weight_format.h"

namespace octavo::cpu {

// Writes row `row` of `weight` to out[0..cols).
void decode_row(const WeightView& weight, int64_t row, float* out);

}  // namespace octavo::cpu
