// rope_axes.h - for tests: rotations by positions on several axes, which differ from those in the cache.
#pragma once

#include <vector>

#include "kernels/latent_write.h"
#include "kernels/qkv_write.h"
#include "kernels/testing/latent_fixture.h"
#include "kernels/testing/qkv_variants.h"

namespace octavo::rope_axes {

inline constexpr int kAxes = 3;

// Available to the host, as Metal requires.
inline mx::array numbers_below(std::mt19937& random, const mx::Shape& shape, unsigned bound) {
  int count = 1;
  for (const auto dim : shape) count *= dim;
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i)
    numbers.push_back(static_cast<int>(static_cast<unsigned>(random()) % bound));
  return mx::array(numbers.begin(), shape, mx::int32);
}

// Options that rotate each pair by an axis of its own.
inline QkvOptions options_of(std::mt19937& random, int dim, DType dtype) {
  return {.q_heads = qkv_variants::kQHeads,
          .q_norm = random_array(random, {dim}, mlx_dtype(dtype)),
          .k_norm = random_array(random, {dim}, mlx_dtype(dtype)),
          .inverse_frequencies = qkv_variants::random_frequencies(random, dim / 2),
          .rope_magnitude = 1.1f,
          .rope_axes = numbers_below(random, {dim / 2}, kAxes)};
}

inline BatchLayout with_positions(BatchLayout layout, const mx::array& rope_positions) {
  layout.rope_positions = rope_positions;
  return layout;
}
inline BatchLayout with_random_positions(std::mt19937& random, const BatchLayout& layout) {
  return with_positions(layout, numbers_below(random, {kAxes, layout.tokens()}, 3000));
}
// Every axis has the positions in the cache.
inline BatchLayout with_own_positions(const BatchLayout& layout) {
  mx::array all = mx::contiguous(mx::broadcast_to(layout.positions, {kAxes, layout.tokens()}));
  all.eval();
  return with_positions(layout, all);
}

// q, and its attention over the written pages.
inline std::vector<mx::array> run(const PagedCase& c, const QkvOptions& options,
                                  const mx::array& qkv, const BatchLayout& layout,
                                  KernelPath path = KernelPath::kNative) {
  PagedFixture fixture(c, path, 2);
  const QkvWritten written = qkv_write(fixture.pages(), qkv, layout, fixture.tables(), options);
  const mx::array out =
      paged_attention(written.q, written.pages, layout, fixture.tables(), c.options);
  mx::eval(written.q, out);
  return {written.q, out};
}

inline std::vector<mx::array> run_latent(const PagedCase& c, const latent_fixture::Inputs& in,
                                         const BatchLayout& layout,
                                         KernelPath path = KernelPath::kNative) {
  PagedFixture fixture(c, path, 2);
  const QkvWritten written =
      latent_write(fixture.pages(), in.rows, in.absorbed, layout, fixture.tables(), in.options);
  const mx::array out =
      paged_attention(written.q, written.pages, layout, fixture.tables(), c.options);
  mx::eval(written.q, out);
  return {written.q, out};
}

}  // namespace octavo::rope_axes
