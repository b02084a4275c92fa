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

// 4-bit weights in groups of 64, float16. One simdgroup per four outputs and row.
KernelCounts mlx_qmv_fast(const MlxProduct& shape);
// Four rows at a time, eight lanes per output.
KernelCounts mlx_qmv_wide(const MlxProduct& shape);
// Tiles of 32 x 32.
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
