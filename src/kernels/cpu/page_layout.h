// page_layout.h (cpu) - the layout of K and V inside a page for the CPU kernels. No MLX.
#pragma once

#include <cstdint>

#include "kernels/types/page_geometry.h"

namespace octavo::cpu {

// Head after head, so that one head's rows are one run of memory:
//   K [block_tokens][k_dim], V [block_tokens][v_dim], and for int8 the scales of K and of V, each
//   [block_tokens] float32.
// Values in keys are read from K: v_first is 0 and V's rows are the first v_dim numbers of K's.
// Paired values, those of plain bfloat16 pages, have the matrix unit's layout on every instruction set:
// [block_tokens / 2][v_dim][2 tokens].
struct PageLayout {
  DType dtype = DType::kFloat32;  // of the numbers, unless int8
  bool int8 = false;
  bool paired_values = false;
  bool values_in_keys = false;
  int64_t block_tokens = 0;
  int64_t kv_heads = 0;
  int64_t k_dim = 0;
  int64_t v_dim = 0;
  int64_t head_bytes = 0;  // from one head to the next
  int64_t k_row_bytes = 0;
  int64_t v_row_bytes = 0;
  int64_t v_first = 0;  // bytes from the head's start to its V; likewise below
  int64_t k_scales = 0;
  int64_t v_scales = 0;
};

// The layout of the CPU kernels.
PageLayout page_layout(const PageGeometry& geometry);

// Without paired values: the layout of Metal.
PageLayout plain_page_layout(const PageGeometry& geometry);

}  // namespace octavo::cpu
