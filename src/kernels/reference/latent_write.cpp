// The oracle of the fused operation: the separate operations in sequence.
#include "kernels/latent_write.h"

#include "kernels/head_linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace octavo::reference {
namespace {

// Numbers [first, last) of the last axis of x [T, heads, dim].
mx::array numbers_of(const mx::array& x, int first, int last) {
  return mx::contiguous(mx::slice(x, {0, 0, first}, {x.shape(0), x.shape(1), last}));
}

}  // namespace

QkvWritten latent_write(const KvPages& pages, const LatentRows& rows, const Weight& absorbed,
                        const BatchLayout& layout, const mx::array& block_tables,
                        const LatentOptions& options) {
  count_launch("latent_write.reference");
  const PageGeometry& g = pages.geometry;
  const auto rotated = [&](const mx::array& x) {
    return reference::rope(x, layout.rope(options.inverse_frequencies, options.rope_axes),
                           options.rope_magnitude);
  };
  const mx::array latent = mx::reshape(rows.latent, {layout.tokens(), 1, g.k_dim});
  const mx::array normed = octavo::rms_norm(numbers_of(latent, 0, g.v_dim), options.norm,
                                            options.norm_eps, KernelPath::kReference);
  const mx::array key =
      mx::concatenate({normed, rotated(numbers_of(latent, g.v_dim, g.k_dim))}, -1);
  const mx::array q =
      mx::concatenate({reference::head_linear(numbers_of(rows.q, 0, absorbed.cols), absorbed),
                       rotated(numbers_of(rows.q, absorbed.cols, rows.q.shape(2)))},
                      -1);
  return {mx::contiguous(q), reference::kv_write(pages, key, normed, layout, block_tables)};
}

}  // namespace octavo::reference
