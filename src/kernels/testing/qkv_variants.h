// qkv_variants.h - for tests: every combination of options of qkv_write.
#pragma once

#include <vector>

#include "kernels/qkv_write.h"
#include "kernels/testing/paged_fixture.h"

namespace octavo::qkv_variants {

inline constexpr int kQHeads = 4;
inline constexpr int kKvHeads = 2;

inline PagedCase case_of(DType dtype, int dim) {
  return {.sequences = {{0, 9}, {40, 1}, {15, 20}},
          .geometry = {.block_tokens = 16,
                       .kv_heads = kKvHeads,
                       .k_dim = dim,
                       .v_dim = dim,
                       .dtype = dtype},
          .q_heads = kQHeads,
          .options = {.scale = 0.1f}};
}

struct Variant {
  const char* name;
  QkvOptions options;
};

// Inverse frequencies below 1, available to the host.
inline mx::array random_frequencies(std::mt19937& random, int pairs) {
  mx::array frequencies = mx::exp(mx::negative(random_array(random, {pairs})));
  frequencies.eval();
  return frequencies;
}

inline std::vector<Variant> variants(std::mt19937& random, int dim, mx::Dtype dtype) {
  const mx::array frequencies = random_frequencies(random, dim / 2);
  // Pairs without rotation: a head that rotates only a quarter of its dimensions.
  mx::array partial =
      mx::concatenate({mx::slice(frequencies, {0}, {dim / 8}), mx::zeros({dim / 2 - dim / 8})}, 0);
  partial.eval();
  auto weights = [&](int count) { return random_array(random, {count}, dtype); };
  return {
      {"norm over rows",
       {.q_heads = kQHeads,
        .q_norm = weights(kQHeads * dim),
        .k_norm = weights(kKvHeads * dim),
        .inverse_frequencies = frequencies}},
      {"normed values",
       {.q_heads = kQHeads,
        .q_norm = weights(dim),
        .k_norm = weights(dim),
        .v_norm = true,
        .inverse_frequencies = frequencies}},
      {"values from keys",
       {.q_heads = kQHeads,
        .q_norm = weights(dim),
        .k_norm = weights(dim),
        .v_norm = true,
        .inverse_frequencies = partial,
        .values_are_keys = true}},
      {"plain values from keys", {.q_heads = kQHeads, .values_are_keys = true}},
      {"scale by position",
       {.q_heads = kQHeads,
        .inverse_frequencies = frequencies,
        .rope_magnitude = 1.1f,
        .position_beta = 0.1f,
        .position_period = 8}},
      {"behind other columns",
       {.q_heads = kQHeads,
        .first_column = 24,
        .q_norm = weights(dim),
        .k_norm = weights(dim),
        .inverse_frequencies = frequencies}},
      {"scale by position alone",
       {.q_heads = kQHeads, .position_beta = 0.5f, .position_period = 3}},
  };
}

inline mx::array random_rows(std::mt19937& random, const PagedCase& c, const QkvOptions& options,
                             int rows) {
  const PageGeometry& g = c.geometry;
  const int kv_width = options.values_are_keys ? g.k_dim : g.k_dim + g.v_dim;
  const int width = options.first_column + kQHeads * g.k_dim + g.kv_heads * kv_width;
  return random_array(random, {rows, width}, mlx_dtype(g.dtype));
}

inline float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5f : dtype == DType::kFloat16 ? 8e-3f : 6.4e-2f;
}

inline const std::vector<DType> kDtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

}  // namespace octavo::qkv_variants
