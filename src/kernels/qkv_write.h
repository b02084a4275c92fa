// qkv_write.h - everything between the q, k, v projection and attention, in one operation.
#pragma once

#include <optional>

#include "kernels/paged_attention.h"

namespace octavo {

struct QkvOptions {
  int q_heads = 0;
  int first_column = 0;  // of qkv's rows, where the q heads begin
  // RMS norm before the rotation: [k_dim] of each head, or [heads * k_dim] of all heads together.
  std::optional<mx::array> q_norm = {};
  std::optional<mx::array> k_norm = {};  // present if q_norm is, of the same type and kind
  bool v_norm = false;                   // RMS norm of each v head, without a weight
  float norm_eps = 1e-6f;
  // [R] float32, 2 R <= k_dim: see rope.h. On Metal the host reads it, so it must be available.
  std::optional<mx::array> inverse_frequencies = {};
  float rope_magnitude = 1;
  // [R] int32: the axis of the layout's rope_positions for each pair of dimensions; unset: the first. On
  // Metal as the inverse frequencies.
  std::optional<mx::array> rope_axes = {};
  // q is multiplied by 1 + beta * log(1 + floor(position / period)) after the rotation.
  float position_beta = 0;
  float position_period = 1;
  bool values_are_keys = false;  // no v columns: v is k before norm and rotation, v_dim = k_dim
};

struct QkvWritten {
  mx::array q;    // [T, q_heads, k_dim], ready for paged_attention
  KvPages pages;  // the same buffer; the caller rebinds its pages to it
};

// Norms and rotates q and k, and writes k and v into the pages in place. Values are rounded to
// qkv's type after each operation.
// qkv: [T, first_column + q_heads * k_dim + kv_heads * (k_dim + v_dim)] of the geometry's dtype:
// the q heads, then the k heads, then the v heads unless values_are_keys
QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options);

// The same for q alone, for a layer that reads another layer's pages. q: [T, q_heads * head_dim].
// Returns [T, q_heads, head_dim].
mx::array prepare_queries(const mx::array& q, const BatchLayout& layout, const QkvOptions& options,
                          KernelPath path = KernelPath::kNative);

namespace reference {
mx::array prepare_queries(const mx::array& q, const BatchLayout& layout, const QkvOptions& options);
QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options);
}  // namespace reference

}  // namespace octavo
