// mlx.h - the one place that names MLX for the layers allowed to see it.
#pragma once

#include <mlx/array.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "base/dtype.h"

namespace octavo {

namespace mx = mlx::core;

mx::Dtype mlx_dtype(DType dtype);

// Only float32, float16 and bfloat16 arrays have one; anything else is our own bug.
DType dtype_of(const mx::array& array);

}  // namespace octavo
