// product_check.h - compares kernels of the GPU in use that must give equal bits. Shows no MLX.
#pragma once

#include <string>

#include "base/dtype.h"

namespace octavo {

// Metal has two kernels for products of quantised weights: one for few rows, one for many
// (kernels/metal/linear.h). Computes some products with both. If a bit differs, the kernel for many
// rows computes all products from now on, which arithmetic_name() shows; returns a sentence for the
// log. Empty: they agree, or Metal is not in use. dtype: of the rows.
std::string check_products(DType dtype);

}  // namespace octavo
