// weight_buffer.h - long-lived memory of packed weights, wrapped as an MLX array.
#pragma once

#include "kernels/runtime/mlx.h"

namespace octavo {

// As make_device_buffer, aligned to a cache line. On Linux, weights are next to each other on large
// pages: a model has hundreds of matrices of a few MiB, and on pages of 4 KiB a product with one row
// spends a tenth of its time on translating addresses. Any thread.
mx::array make_weight_buffer(mx::Shape shape, mx::Dtype dtype);

}  // namespace octavo
