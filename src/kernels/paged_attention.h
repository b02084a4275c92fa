// paged_attention.h - attention over pages for a flat batch. qkv_write.h writes the pages.
#pragma once

#include <optional>

#include "kernels/batch_layout.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/types/attention_options.h"
#include "kernels/types/page_geometry.h"

namespace octavo {

// The pages of one layer. The page format depends on the KernelPath: pages written by one path must
// not be read by the other.
struct KvPages {
  mx::array bytes;  // [pages, page bytes >= geometry.page_bytes()] uint8, from make_device_buffer
  PageGeometry geometry;
  KernelPath path = KernelPath::kNative;
};

using AttentionOptions = AttentionOptionsWith<std::optional<mx::array>>;

// Attention of every row over its own sequence's pages: up to its own position, or up to
// layout.last_visible. What a page holds past the context is never read. Returns [T, q_heads, v_dim] in
// q's dtype.
// q: [T, q_heads, k_dim], q_heads a multiple of kv_heads   block_tables: [S, columns] int32: column
// c holds the page of tokens [c * block_tokens, ...); entries past the context are never read
mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options);

namespace reference {
// Writes each row's k and v into its page. Returns the pages as a new array.
KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables);
mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options);
}  // namespace reference

}  // namespace octavo
