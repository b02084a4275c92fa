// free_product.h - a bf16 product that may split its sums by the number of rows and by thread. It
// exists to tell what `linear` pays for summing in one order. Needs the tile unit.
#pragma once

#include <span>

#include "bench/case_runner.h"
#include "kernels/runtime/mlx.h"

namespace octavo::bench {

// Runs over copies of one weight, with the split that measures fastest for x's rows. Empty if the
// machine or OCTAVO_ISA has no tiles.
//   x:      [rows, cols] bf16, cols a multiple of 64
//   weight: [outputs, cols] bf16, outputs a multiple of 32
Contender free_product(const mx::array& x, const mx::array& weight, int copies);

}  // namespace octavo::bench
