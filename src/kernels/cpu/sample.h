// sample.h (cpu) - one row's token.
#pragma once

#include <span>

#include "kernels/row_sampling.h"

namespace octavo::cpu {

int32_t sample_row(std::span<const float> logits, const RowSampling& sampling);

}  // namespace octavo::cpu
