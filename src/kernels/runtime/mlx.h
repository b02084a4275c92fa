// mlx.h - the only header that includes MLX, for the layers that may use it.
#pragma once

#include <mlx/array.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "base/dtype.h"

namespace octavo {

namespace mx = mlx::core;

mx::Dtype mlx_dtype(DType dtype);

// Aborts unless the array is float32, float16 or bfloat16.
DType dtype_of(const mx::array& array);

}  // namespace octavo
