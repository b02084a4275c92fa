// kernel_check.h - compares kernels of the GPU in use that must give equal bits. Shows no MLX.
#pragma once

#include <string>

#include "base/dtype.h"

namespace octavo {

// Metal has two kernels for products with quantised weights (kernels/metal/linear.h) and two for attention
// (kernels/metal/paged_attention.h): one for few rows, one for many. Computes some results with both. If a
// bit differs, the kernel for many rows computes all of them from now on, which arithmetic_name() shows;
// returns a sentence for the log. Empty: they agree, or Metal is not in use. dtype: of the rows.
std::string check_kernels(DType dtype);

}  // namespace octavo
