// qkv_write.h - everything between the q, k, v projection and attention, in one operation.
#pragma once

#include <optional>

#include "kernels/paged_attention.h"

namespace octavo {

struct QkvOptions {
  int q_heads = 0;
  std::optional<mx::array> q_norm = {};  // [k_dim]: RMS norm of each head, before the rotation
  std::optional<mx::array> k_norm = {};  // [k_dim], given when q_norm is, of the same type
  float norm_eps = 1e-6f;
  std::optional<mx::array> inverse_frequencies = {};  // [R] float32, 2 R <= k_dim: rope.h
  float rope_magnitude = 1;
};

struct QkvWritten {
  mx::array q;    // [T, q_heads, k_dim], ready for paged_attention
  KvPages pages;  // the same buffer; the caller rebinds its pages to it
};

// Norms and rotates q and k, and writes k and v into the pages in place. Values are rounded to
// qkv's type after the norm and after the rotation.
// qkv: [T, q_heads * k_dim + kv_heads * (k_dim + v_dim)] of the geometry's dtype: the q heads, then
// the k heads, then the v heads
QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options);

namespace reference {
QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options);
}

}  // namespace octavo
