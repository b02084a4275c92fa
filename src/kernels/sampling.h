// sampling.h - draws tokens on the device.
#pragma once

#include <vector>

#include "kernels/mlx.h"
#include "kernels/row_sampling.h"

namespace octavo {

// logits: [R, vocab] float32, contiguous; rows: R entries. Returns [R] int32. A row's token depends
// on its own logits and RowSampling only. NaN counts as minus infinity.
mx::array sample(const mx::array& logits, std::vector<RowSampling> rows);

}  // namespace octavo
