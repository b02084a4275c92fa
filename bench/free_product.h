// free_product.h - a bf16 product that may split its sums by number of rows and by thread. It shows
// the cost of the fixed summation order of `linear`. Needs AMX tiles.
#pragma once

#include <span>

#include "bench/case_runner.h"
#include "kernels/runtime/mlx.h"

namespace octavo::bench {

// Uses copies of one weight and the split that is currently fastest for this number of rows. Empty
// if the machine or OCTAVO_ISA does not support tiles. x: [rows, cols], weight: [outputs, cols],
// both bf16; cols a multiple of 64, outputs a multiple of 32
Contender free_product(const mx::array& x, const mx::array& weight, int copies);

}  // namespace octavo::bench
