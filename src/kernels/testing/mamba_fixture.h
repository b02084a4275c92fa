// mamba_fixture.h - for tests: Mamba-2's recurrence over sequences whose state is in pages.
#pragma once

#include <vector>

#include "kernels/mamba2.h"
#include "kernels/testing/state_fixture.h"

namespace octavo::mamba_fixture {

struct Shape {
  int groups, heads, state_dim, head_dim;
};

// Two layers share the pages; this is the second. Three heads per page.
inline StateGeometry geometry_of(const Shape& shape) {
  return {.columns = (2 * shape.heads + 2) / 3,
          .heads = shape.heads,
          .k_dim = shape.state_dim,
          .v_dim = shape.head_dim,
          .first_head = shape.heads,
          .heads_per_page = 3};
}

inline int page_bytes_of(const StateGeometry& g) {
  return static_cast<int>(3 * g.head_bytes()) + 64;
}

struct Subject {
  StateGeometry geometry;
  Mamba2Rows rows;
  Mamba2Weights weights;
  Mamba2Options options;
};

inline Subject make_subject(DType dtype, const Shape& s, int tokens) {
  std::mt19937 random(23);
  const mx::Dtype type = mlx_dtype(dtype);
  const int values = s.heads * s.head_dim;
  const mx::array xbc = random_array(random, {tokens, values + 2 * s.groups * s.state_dim}, type);
  const mx::array gates = random_array(random, {tokens, 24 + values + s.heads}, type);
  // Decays near 1, as in trained models, so that errors in the state persist and are found.
  mx::array a_log = mx::subtract(random_array(random, {s.heads}), mx::array(3.0f));
  a_log.eval();
  return {geometry_of(s),
          {.xbc = xbc, .gates = gates, .z_column = 24, .dt_column = 24 + values},
          {a_log, random_array(random, {s.heads}), random_array(random, {s.heads})},
          {.groups = s.groups}};
}

// Extreme steps: no decay, full decay.
inline Subject with_saturated_steps(Subject s) {
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

// Of the largest outputs, which are in the tens.
inline float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 5e-4f : dtype == DType::kFloat16 ? 6e-2f : 0.5f;
}

inline Mamba2Rows rows_of(const Mamba2Rows& all, int begin, int end) {
  Mamba2Rows rows = all;
  rows.xbc = octavo::rows_of(all.xbc, begin, end);
  rows.gates = octavo::rows_of(all.gates, begin, end);
  return rows;
}

// The subject's rows, step by step.
inline std::vector<mx::array> run_steps(const Subject& s, KernelPath path,
                                        const std::vector<StateStep>& steps) {
  return octavo::run_steps(
      StateFixture(s.geometry, path, page_bytes_of(s.geometry), 3), steps,
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        return mamba2(fixture.pages(), rows_of(s.rows, begin, begin + layout.tokens()), s.weights,
                      s.options, layout, table);
      });
}

// All rows of one sequence.
inline std::vector<float> run_sequence(const Subject& s, int tokens, const StateSteps& how) {
  return run_in_steps(
      StateFixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), how.neighbours + 1),
      tokens, how,
      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
          const mx::array& table) {
        Mamba2Rows rows = s.rows;
        rows.xbc = behind_neighbours(s.rows.xbc, how.neighbours, begin, count);
        rows.gates = behind_neighbours(s.rows.gates, how.neighbours, begin, count);
        return mamba2(fixture.pages(), rows, s.weights, s.options, layout, table);
      });
}

inline void expect_a_state_after_each_row(const Subject& s, KernelPath path) {
  octavo::expect_a_state_after_each_row(
      s.geometry, path, page_bytes_of(s.geometry),
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        return mamba2(fixture.pages(), rows_of(s.rows, begin, begin + layout.tokens()), s.weights,
                      s.options, layout, table);
      });
}

}  // namespace octavo::mamba_fixture
