// mlx_kernels.h (metal_sim) - runs MLX's own Metal kernels, from the headers of the installed wheel,
// and counts what they cost. Results are compared with a plain product; a wrong one throws.
#pragma once

#include <string>

#include "metal_sim/simulator.h"

namespace octavo::metal_sim {

struct MlxProduct {
  int rows;
  int inputs;
  int outputs;
};

// 4-bit weights in groups of 64, float16. One simdgroup per four outputs and row: MLX's choice for
// few rows on M1 and M2.
KernelCounts mlx_qmv_fast(const MlxProduct& shape);
// The same, four rows at a time: its choice for 2 to 15 rows on M3 and later.
KernelCounts mlx_qmv_wide(const MlxProduct& shape);
// Tiles of 32 x 32: its choice for many rows.
KernelCounts mlx_qmm(const MlxProduct& shape);
// Dense float16 in tiles of 64 x 64.
KernelCounts mlx_gemm(const MlxProduct& shape);

// One row of attention.
struct MlxAttention {
  int query_heads;
  int kv_heads;
  int keys;
};
KernelCounts mlx_sdpa_vector(const MlxAttention& shape);

}  // namespace octavo::metal_sim
