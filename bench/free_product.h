// free_product.h - a bf16 product that may split its sums by the number of rows and by thread. It
// exists to tell what `linear` pays for summing in one order. Needs the tile unit.
#pragma once

#include <span>

#include "bench/case_runner.h"
#include "kernels/runtime/mlx.h"

namespace octavo::bench {

// Over copies of one weight, with the split that is fastest for x's rows here and now. Empty where
// the machine, or OCTAVO_ISA, has no tiles. x: [rows, cols], weight: [outputs, cols], both bf16;
// cols a multiple of 64, outputs of 32
Contender free_product(const mx::array& x, const mx::array& weight, int copies);

}  // namespace octavo::bench
