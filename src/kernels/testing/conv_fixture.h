// conv_fixture.h - for tests: convolutions over sequences whose last rows are in pages.
#pragma once

#include <vector>

#include "kernels/causal_conv.h"
#include "kernels/testing/state_fixture.h"

namespace octavo::conv_fixture {

// Two layers share the pages; this is the second. Units of 32 channels, two per page.
inline StateGeometry geometry_of(DType dtype, int conv_rows) {
  return {.columns = 6,
          .conv_rows = conv_rows,
          .conv_units = 5,
          .unit_channels = 32,
          .conv_dtype = dtype,
          .conv_column = 1,
          .first_unit = 5,
          .units_per_page = 2};
}

inline int page_bytes_of(const StateGeometry& g) {
  return static_cast<int>(2 * g.unit_bytes()) + 64;
}

struct Subject {
  StateGeometry geometry;
  mx::array x;  // [tokens, first column + channels + 16]
  ConvWeights weights;
  ConvOptions options;
};

struct Kind {
  DType dtype;
  int conv_rows;
  bool biased = false;  // or with an activation
  DType weights;
  int first_column = 48;
};

inline Subject make_subject(const Kind& kind, int tokens) {
  std::mt19937 random(3);
  const StateGeometry g = geometry_of(kind.dtype, kind.conv_rows);
  const mx::Dtype type = mlx_dtype(kind.weights);
  ConvWeights weights{random_array(random, {kind.conv_rows + 1, g.channels()}, type)};
  if (kind.biased) weights.bias = random_array(random, {g.channels()}, type);
  return {
      g,
      random_array(random, {tokens, kind.first_column + g.channels() + 16}, mlx_dtype(kind.dtype)),
      weights,
      {.first_column = kind.first_column,
       .activation = kind.biased ? ConvActivation::kNone : ConvActivation::kSilu}};
}

inline float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5f : dtype == DType::kFloat16 ? 1e-2f : 8e-2f;
}

// The subject's rows, step by step.
inline std::vector<mx::array> run_steps(const Subject& s, KernelPath path,
                                        const std::vector<StateStep>& steps) {
  return octavo::run_steps(
      StateFixture(s.geometry, path, page_bytes_of(s.geometry), 3), steps,
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        const mx::array x = rows_of(s.x, begin, begin + layout.tokens());
        return causal_conv(fixture.pages(), x, s.weights, s.options, layout, table);
      });
}

// All rows of one sequence.
inline std::vector<float> run_sequence(const Subject& s, int tokens, const StateSteps& how) {
  return run_in_steps(
      StateFixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), how.neighbours + 1),
      tokens, how,
      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
          const mx::array& table) {
        const mx::array x = behind_neighbours(s.x, how.neighbours, begin, count);
        return causal_conv(fixture.pages(), x, s.weights, s.options, layout, table);
      });
}

inline void expect_a_state_after_each_row(const Subject& s, KernelPath path) {
  octavo::expect_a_state_after_each_row(
      s.geometry, path, page_bytes_of(s.geometry),
      [&](StateFixture& fixture, int begin, const BatchLayout& layout, const mx::array& table) {
        const mx::array x = rows_of(s.x, begin, begin + layout.tokens());
        return causal_conv(fixture.pages(), x, s.weights, s.options, layout, table);
      });
}

}  // namespace octavo::conv_fixture
