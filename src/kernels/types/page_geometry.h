// page_geometry.h - the contents of one page of a softmax attention layer. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo {

// How K and V are stored.
enum class KvFormat : uint8_t {
  kPlain,  // unchanged, in the pages' dtype
  kInt8,   // each (token, head) row as int8 times one float32 scale, for K and for V
};

// K and V of block_tokens tokens. Only kernels rely on the order inside a page.
//
// Values in keys: V of a token is the first v_dim numbers of its K and takes no bytes of its own. A
// latent page has this form with one head: [latent | rotated key], read by every query head.
struct PageGeometry {
  int block_tokens = 16;  // a multiple of 8
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  DType dtype = DType::kFloat32;  // of the rows that are written, and of plain pages
  KvFormat format = KvFormat::kPlain;
  bool values_in_keys = false;  // plain pages only, v_dim <= k_dim

  size_t element_bytes() const { return format == KvFormat::kInt8 ? 1 : size_of(dtype); }
  size_t k_bytes() const { return part_bytes(k_dim); }
  size_t v_bytes() const { return values_in_keys ? 0 : part_bytes(v_dim); }
  size_t scale_bytes() const {  // of K; V has as many
    return format == KvFormat::kInt8 ? rows() * sizeof(float) : 0;
  }
  size_t page_bytes() const { return k_bytes() + v_bytes() + 2 * scale_bytes(); }

  bool operator==(const PageGeometry&) const = default;

 private:
  size_t rows() const { return static_cast<size_t>(block_tokens) * static_cast<size_t>(kv_heads); }
  size_t part_bytes(int dim) const { return rows() * static_cast<size_t>(dim) * element_bytes(); }
};

}  // namespace octavo
