// page_params.h - the layout of K and V in pages, for Metal kernels and their host code. No MLX.
//
// For each head: K [block_tokens][k_dim], V [block_tokens][v_dim], and for int8 the scales of K and
// of V, [block_tokens] float32 each.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

struct PageParams {
  int32_t page_stride;    // bytes from one page to the next
  int32_t table_columns;  // of block_tables
  int32_t block_tokens;
  int32_t head_bytes;  // from one head to the next
  int32_t v_first;     // byte offset of V in the head; likewise for the scales
  int32_t k_scales;
  int32_t v_scales;
};

}  // namespace metal
}  // namespace octavo
