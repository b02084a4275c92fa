// page_geometry.h - what one page of a softmax layer holds. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo {

// K then V of block_tokens tokens: K is [block_tokens, kv_heads, k_dim], V [block_tokens, kv_heads,
// v_dim]. Only kernels may rely on the order inside a page.
struct PageGeometry {
  int block_tokens = 16;  // a multiple of 8
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  DType dtype = DType::kFloat32;

  size_t k_bytes() const { return part_bytes(k_dim); }
  size_t v_bytes() const { return part_bytes(v_dim); }
  size_t page_bytes() const { return k_bytes() + v_bytes(); }

  bool operator==(const PageGeometry&) const = default;

 private:
  size_t part_bytes(int dim) const {
    return static_cast<size_t>(block_tokens) * static_cast<size_t>(kv_heads) *
           static_cast<size_t>(dim) * size_of(dtype);
  }
};

}  // namespace octavo
