// The oracle of the fused operation: the operations it stands for, one after the other.
#include "kernels/qkv_write.h"

#include "kernels/norm.h"
#include "kernels/rope.h"

namespace octavo::reference {
namespace {

// Columns [first, first + heads * dim) as [T, heads, dim].
mx::array heads_at(const mx::array& qkv, int first, int heads, int dim) {
  const mx::array part = mx::slice(qkv, {0, first}, {qkv.shape(0), first + heads * dim});
  return mx::contiguous(mx::reshape(part, {qkv.shape(0), heads, dim}));
}

mx::array prepare(mx::array x, const std::optional<mx::array>& norm, const BatchLayout& layout,
                  const QkvOptions& options) {
  if (norm) x = octavo::rms_norm(x, *norm, options.norm_eps, KernelPath::kReference);
  if (!options.inverse_frequencies) return x;
  return reference::rope(x, layout.positions, *options.inverse_frequencies, options.rope_magnitude);
}

}  // namespace

QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options) {
  count_launch("qkv_write.reference");
  const PageGeometry& g = pages.geometry;
  const int k_first = options.q_heads * g.k_dim;
  const int v_first = k_first + g.kv_heads * g.k_dim;
  const mx::array q =
      prepare(heads_at(qkv, 0, options.q_heads, g.k_dim), options.q_norm, layout, options);
  const mx::array k =
      prepare(heads_at(qkv, k_first, g.kv_heads, g.k_dim), options.k_norm, layout, options);
  const mx::array v = heads_at(qkv, v_first, g.kv_heads, g.v_dim);
  return {q, reference::kv_write(pages, k, v, layout, block_tables)};
}

}  // namespace octavo::reference
