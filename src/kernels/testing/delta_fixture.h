// delta_fixture.h - for tests: the gated delta rule over sequences whose state is in pages.
#pragma once

#include <vector>

#include "kernels/gated_delta.h"
#include "kernels/testing/state_fixture.h"

namespace octavo::delta_fixture {

struct Shape {
  int key_heads, value_heads, k_dim, v_dim;
};

// Two layers share the pages; this is the second. Three heads per page.
inline StateGeometry geometry_of(const Shape& shape) {
  return {.columns = (2 * shape.value_heads + 2) / 3,
          .heads = shape.value_heads,
          .k_dim = shape.k_dim,
          .v_dim = shape.v_dim,
          .first_head = shape.value_heads,
          .heads_per_page = 3};
}

inline int page_bytes_of(const StateGeometry& g) {
  return static_cast<int>(3 * g.head_bytes()) + 64;
}

struct Subject {
  StateGeometry geometry;
  GatedDeltaRows rows;
  GatedDeltaWeights weights;
  GatedDeltaOptions options;
};

inline Subject make_subject(DType dtype, const Shape& s, int tokens) {
  std::mt19937 random(17);
  const mx::Dtype type = mlx_dtype(dtype);
  const int keys = 2 * s.key_heads * s.k_dim;
  const int values = s.value_heads * s.v_dim;
  const mx::array qkv = random_array(random, {tokens, keys + values}, type);
  const mx::array gates = random_array(random, {tokens, 24 + values + 2 * s.value_heads}, type);
  // Decays near 1, as in trained models, so that errors in the state persist and are found.
  mx::array a_log = mx::subtract(random_array(random, {s.value_heads}), mx::array(3.0f));
  a_log.eval();
  return {geometry_of(s),
          {.qkv = qkv,
           .gates = gates,
           .z_column = 24 + s.value_heads,
           .a_column = 24 + s.value_heads + values,
           .b_column = 24},
          {a_log, random_array(random, {s.value_heads}), random_array(random, {s.v_dim}, type)},
          {.key_heads = s.key_heads, .norm_eps = 1e-6f}};
}

// Extreme gates: no decay, full decay, no update.
inline Subject with_saturated_gates(Subject s) {
  const mx::array& gates = s.rows.gates;
  const int tokens = gates.shape(0), tail = gates.shape(1) - s.geometry.heads;
  const mx::array large = mx::multiply(gates, mx::astype(mx::array(60.0f), gates.dtype()));
  s.rows.gates =
      mx::contiguous(mx::concatenate({mx::slice(gates, {0, 0}, {tokens, tail}),
                                      mx::slice(large, {0, tail}, {tokens, gates.shape(1)})},
                                     1));
  s.rows.gates.eval();
  return s;
}

inline float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-4f : dtype == DType::kFloat16 ? 2e-2f : 0.13f;
}

inline GatedDeltaRows rows_of(const GatedDeltaRows& all, int begin, int end) {
  GatedDeltaRows rows = all;
  rows.qkv = octavo::rows_of(all.qkv, begin, end);
  rows.gates = octavo::rows_of(all.gates, begin, end);
  return rows;
}

// The subject's rows, step by step.
inline std::vector<mx::array> run_steps(const Subject& s, KernelPath path,
                                        const std::vector<StateStep>& steps) {
  return octavo::run_steps(
      StateFixture(s.geometry, path, page_bytes_of(s.geometry), 3), steps,
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        return gated_delta(fixture.pages(), rows_of(s.rows, begin, begin + layout.tokens()),
                           s.weights, s.options, layout, table);
      });
}

// All rows of one sequence.
inline std::vector<float> run_sequence(const Subject& s, int tokens, const StateSteps& how) {
  return run_in_steps(
      StateFixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), how.neighbours + 1),
      tokens, how,
      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
          const mx::array& table) {
        GatedDeltaRows rows = s.rows;
        rows.qkv = behind_neighbours(s.rows.qkv, how.neighbours, begin, count);
        rows.gates = behind_neighbours(s.rows.gates, how.neighbours, begin, count);
        return gated_delta(fixture.pages(), rows, s.weights, s.options, layout, table);
      });
}

inline void expect_a_state_after_each_row(const Subject& s, KernelPath path) {
  octavo::expect_a_state_after_each_row(
      s.geometry, path, page_bytes_of(s.geometry),
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        return gated_delta(fixture.pages(), rows_of(s.rows, begin, begin + layout.tokens()),
                           s.weights, s.options, layout, table);
      });
}

}  // namespace octavo::delta_fixture
