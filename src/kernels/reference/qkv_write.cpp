// The oracle of the fused operation: the separate operations in sequence.
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

// Norms each head, or all heads of a token together if the weight has that length.
mx::array norm_heads(const mx::array& x, const mx::array& weight, float eps) {
  if (weight.shape(0) == x.shape(2))
    return octavo::rms_norm(x, weight, eps, KernelPath::kReference);
  const mx::array rows = mx::reshape(x, {x.shape(0), x.shape(1) * x.shape(2)});
  return mx::reshape(octavo::rms_norm(rows, weight, eps, KernelPath::kReference), x.shape());
}

mx::array prepare(mx::array x, const std::optional<mx::array>& norm, const BatchLayout& layout,
                  const QkvOptions& options) {
  if (norm) x = norm_heads(x, *norm, options.norm_eps);
  if (!options.inverse_frequencies) return x;
  return reference::rope(x, layout.rope(*options.inverse_frequencies, options.rope_axes),
                         options.rope_magnitude);
}

mx::array scale_by_position(const mx::array& q, const BatchLayout& layout,
                            const QkvOptions& options) {
  if (options.position_beta == 0) return q;
  const mx::array turns = mx::floor(
      mx::divide(mx::astype(layout.positions, mx::float32), mx::array(options.position_period)));
  const mx::array logs = mx::log(mx::add(mx::array(1.0f), turns));
  const mx::array scale =
      mx::add(mx::array(1.0f), mx::multiply(mx::array(options.position_beta), logs));
  const mx::array wide =
      mx::multiply(mx::astype(q, mx::float32), mx::reshape(scale, {layout.tokens(), 1, 1}));
  return mx::astype(wide, q.dtype());
}

}  // namespace

mx::array prepare_queries(const mx::array& q, const BatchLayout& layout,
                          const QkvOptions& options) {
  count_launch("prepare_queries.reference");
  const mx::array heads = heads_at(q, 0, options.q_heads, q.shape(1) / options.q_heads);
  return scale_by_position(prepare(heads, options.q_norm, layout, options), layout, options);
}

QkvWritten qkv_write(const KvPages& pages, const mx::array& qkv, const BatchLayout& layout,
                     const mx::array& block_tables, const QkvOptions& options) {
  count_launch("qkv_write.reference");
  const PageGeometry& g = pages.geometry;
  const int q_first = options.first_column;
  const int k_first = q_first + options.q_heads * g.k_dim;
  const int v_first = options.values_are_keys ? k_first : k_first + g.kv_heads * g.k_dim;
  const mx::array q =
      prepare(heads_at(qkv, q_first, options.q_heads, g.k_dim), options.q_norm, layout, options);
  const mx::array k =
      prepare(heads_at(qkv, k_first, g.kv_heads, g.k_dim), options.k_norm, layout, options);
  mx::array v = heads_at(qkv, v_first, g.kv_heads, g.v_dim);
  if (options.v_norm) v = norm_heads(v, mx::ones({g.v_dim}), options.norm_eps);
  return {scale_by_position(q, layout, options),
          reference::kv_write(pages, k, v, layout, block_tables)};
}

}  // namespace octavo::reference
