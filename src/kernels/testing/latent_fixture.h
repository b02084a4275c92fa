// latent_fixture.h - for tests: rows and weights of multi-head latent attention.
#pragma once

#include <vector>

#include "kernels/latent_write.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/weights.h"

namespace octavo::latent_fixture {

struct LatentShape {
  int rank;
  int rope;
  int nope;
  int heads;
};

inline PagedCase case_of(const LatentShape& shape, DType dtype) {
  return {.sequences = {{0, 9}, {40, 1}, {15, 20}, {300, 1}},
          .geometry = {.block_tokens = 16,
                       .kv_heads = 1,
                       .k_dim = shape.rank + shape.rope,
                       .v_dim = shape.rank,
                       .dtype = dtype,
                       .values_in_keys = true},
          .q_heads = shape.heads,
          .options = {.scale = 0.02f}};
}

struct Inputs {
  LatentRows rows;
  Weight absorbed;
  LatentOptions options;
};

inline Inputs inputs_of(const LatentShape& shape, DType dtype, int tokens) {
  std::mt19937 random(8);
  const mx::Dtype type = mlx_dtype(dtype);
  const auto array = [&](const mx::Shape& s) { return random_array(random, s, type); };
  const mx::array frequencies = mx::exp(
      mx::multiply(mx::arange(shape.rope / 2), mx::array(-8.0f / static_cast<float>(shape.rope))));
  const mx::array matrices = mx::multiply(array({shape.heads * shape.rank, shape.nope}),
                                          mx::astype(mx::array(0.1f), type));
  mx::eval(frequencies, matrices);
  return {{array({tokens, shape.heads, shape.nope + shape.rope}),
           array({tokens, shape.rank + shape.rope})},
          make_dense_weight(shape.heads * shape.rank, shape.nope, dtype, bytes_of(matrices)),
          {.norm = array({shape.rank}),
           .norm_eps = 1e-6f,
           .inverse_frequencies = frequencies,
           .rope_magnitude = 1.1f}};
}

// q, and its attention over the written pages.
inline std::vector<mx::array> run(const PagedCase& c, const Inputs& in, KernelPath path) {
  PagedFixture fixture(c, path, 2);
  const QkvWritten written = latent_write(fixture.pages(), in.rows, in.absorbed, fixture.layout(),
                                          fixture.tables(), in.options);
  const mx::array out =
      paged_attention(written.q, written.pages, fixture.layout(), fixture.tables(), c.options);
  mx::eval(written.q, out);
  return {written.q, out};
}

}  // namespace octavo::latent_fixture
