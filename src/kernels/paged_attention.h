// paged_attention.h - writing K/V into pages in place, and attention over them for a flat batch.
#pragma once

#include <optional>

#include "kernels/batch_layout.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/types/page_geometry.h"

namespace octavo {

// The pages of one layer. kv_write and paged_attention of one KernelPath understand each other;
// pages written by one path must not be read by the other.
struct KvPages {
  mx::array bytes;  // [pages, page bytes >= geometry.page_bytes()] uint8, from make_device_buffer
  PageGeometry geometry;
  KernelPath path = KernelPath::kNative;
};

// Writes each row's k and v at its position, in place, and returns the same buffer as a new graph
// node. The caller must rebind its pages to the result, so that readers wait for the write.
//   k:            [T, kv_heads, k_dim] of the geometry's dtype
//   v:            [T, kv_heads, v_dim] of the geometry's dtype; not read if values are stored in
//                 the keys
//   block_tables: [S, columns] int32; column c is the page of tokens [c * block_tokens, ...).
//                 Entries beyond the context are never read.
KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables);

struct AttentionOptions {
  float scale = 1;
  int window = 0;      // > 0: a row sees its last `window` positions, itself included
  float soft_cap = 0;  // > 0: scores become soft_cap * tanh(score / soft_cap)
  std::optional<mx::array> sinks = {};  // [q_heads] float32: a logit only the denominator sees
};

// Causal attention of every row over its own sequence's pages. What a page holds past the context
// is never read. Returns [T, q_heads, v_dim] in q's dtype. q: [T, q_heads, k_dim], q_heads a
// multiple of kv_heads
mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options);

namespace reference {
KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables);
mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options);
}  // namespace reference

}  // namespace octavo
