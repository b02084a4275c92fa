// Kernels whose sequences keep a state in pages: the causal convolution and the gated delta rule.
#include "kernels/causal_conv.h"
#include "kernels/gated_delta.h"
#include "kernels/state_fixture.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

const std::vector<DType> kDtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

// Chunk and neighbours of expect_bits_in_every_batch_and_chunk, without the CPU's threads.
template <typename Run>
void expect_bits_however_run(int tokens, const std::vector<int>& chunks, const Run& run) {
  const auto whole = run(StateSteps{.chunk = tokens});
  for (const int chunk : chunks) {
    for (const int neighbours : {0, 2}) {
      SCOPED_TRACE(testing::Message() << chunk << " " << neighbours);
      const bool moving = neighbours > 0;
      EXPECT_TRUE(same_bits(whole, run(StateSteps{chunk, neighbours, moving})));
    }
  }
}

// ---- convolution ----

// Two layers share the pages; this is the second. Units of 48 channels, two to a page.
StateGeometry conv_geometry(DType dtype, int conv_rows) {
  return {.columns = 4,
          .conv_rows = conv_rows,
          .conv_units = 3,
          .unit_channels = 48,
          .conv_dtype = dtype,
          .conv_column = 1,
          .first_unit = 3,
          .units_per_page = 2};
}

int conv_page_bytes(const StateGeometry& g) { return static_cast<int>(2 * g.unit_bytes()) + 64; }

struct Convolution {
  StateGeometry geometry;
  mx::array x;
  ConvWeights weights;
  ConvOptions options;
};

Convolution make_convolution(DType dtype, int conv_rows, bool biased, DType weights, int tokens) {
  std::mt19937 random(3);
  const StateGeometry g = conv_geometry(dtype, conv_rows);
  ConvWeights w{random_array(random, {conv_rows + 1, g.channels()}, mlx_dtype(weights))};
  if (biased) w.bias = random_array(random, {g.channels()}, mlx_dtype(weights));
  return {
      g,
      random_array(random, {tokens, 7 + g.channels() + 16}, mlx_dtype(dtype)),
      w,
      {.first_column = 7, .activation = biased ? ConvActivation::kNone : ConvActivation::kSilu}};
}

// Rows of three sequences in two steps: a chunk, then what is left, one of them in other pages. One
// has more rows than an item of work, one fewer than the state.
std::vector<mx::array> two_steps(const Convolution& s, KernelPath path) {
  StateFixture fixture(s.geometry, path, conv_page_bytes(s.geometry), 3);
  std::vector<mx::array> outs;
  const auto step = [&](const std::vector<int>& rows, int begin,
                        const std::vector<std::pair<int, int>>& sets) {
    const BatchLayout layout = state_layout(rows);
    auto [y, pages] =
        causal_conv(fixture.pages(), rows_between(s.x, begin, begin + layout.tokens()), s.weights,
                    s.options, layout, fixture.table({0, 1, 2}, sets));
    y.eval();
    fixture.rebind(pages);
    outs.push_back(y);
  };
  step({67, 1, 2}, 0, {{-1, 0}, {-1, 0}, {-1, 0}});
  step({1, 7, 0}, 70, {{0, 0}, {0, 1}, {0, 0}});
  step({2, 34, 1}, 78, {{0, 1}, {1, 1}, {0, 0}});
  return outs;
}

float conv_tolerance(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5f : dtype == DType::kFloat16 ? 1e-2f : 8e-2f;
}

TEST(MetalCausalConv, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : kDtypes) {
    for (const int conv_rows : {1, 3, 7}) {
      const bool biased = conv_rows != 3;
      const DType weights = conv_rows == 7 ? DType::kFloat32 : dtype;
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << conv_rows);
      const Convolution s = make_convolution(dtype, conv_rows, biased, weights, 115);
      const auto expected = two_steps(s, KernelPath::kReference);
      const auto on_cpu = two_steps(s, KernelPath::kNative);
      SimulatedMetal metal;
      const auto on_metal = two_steps(s, KernelPath::kNative);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(largest_difference(expected[i], on_cpu[i]), conv_tolerance(dtype));
        EXPECT_LT(largest_difference(expected[i], on_metal[i]), conv_tolerance(dtype));
      }
      EXPECT_EQ(metal.counts()["causal_conv"].launches, 3u);
    }
  }
}

std::vector<float> run_convolution(const Convolution& s, int tokens, const StateSteps& how) {
  return run_in_steps(StateFixture(s.geometry, KernelPath::kNative, conv_page_bytes(s.geometry),
                                   how.neighbours + 1),
                      tokens, how,
                      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
                          const mx::array& table) {
                        auto [y, pages] = causal_conv(
                            fixture.pages(), behind_neighbours(s.x, how.neighbours, begin, count),
                            s.weights, s.options, layout, table);
                        y.eval();
                        fixture.rebind(pages);
                        return y;
                      });
}

TEST(MetalCausalConv, RowsHaveTheirBitsInEveryBatchAndChunk) {
  constexpr int kTokens = 70;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Convolution s = make_convolution(dtype, 3, false, dtype, kTokens);
    const SimulatedMetal metal;
    expect_bits_however_run(kTokens, {1, 2, 16, 33, kTokens}, [&](const StateSteps& how) {
      return run_convolution(s, kTokens, how);
    });
  }
}

// ---- gated delta ----

struct Shape {
  int key_heads, value_heads, k_dim, v_dim;
};

// Two layers share the pages; this is the second. Three heads to a page.
StateGeometry delta_geometry(const Shape& shape) {
  return {.columns = (2 * shape.value_heads + 2) / 3,
          .heads = shape.value_heads,
          .k_dim = shape.k_dim,
          .v_dim = shape.v_dim,
          .first_head = shape.value_heads,
          .heads_per_page = 3};
}

int delta_page_bytes(const StateGeometry& g) { return static_cast<int>(3 * g.head_bytes()) + 64; }

struct Delta {
  StateGeometry geometry;
  GatedDeltaRows rows;
  GatedDeltaWeights weights;
  GatedDeltaOptions options;
};

Delta make_delta(DType dtype, const Shape& s, int tokens, float gate_scale = 1) {
  std::mt19937 random(17);
  const mx::Dtype type = mlx_dtype(dtype);
  const int keys = 2 * s.key_heads * s.k_dim;
  const int values = s.value_heads * s.v_dim;
  const mx::array qkv = random_array(random, {tokens, keys + values}, type);
  mx::array gates = random_array(random, {tokens, 24 + values + 2 * s.value_heads}, type);
  gates = mx::multiply(gates, mx::array(gate_scale, type));
  gates.eval();
  // Decays near 1, as trained models have them: what a state forgets late, tests see late.
  mx::array a_log = mx::subtract(random_array(random, {s.value_heads}), mx::array(3.0f));
  a_log.eval();
  return {delta_geometry(s),
          {.qkv = qkv,
           .gates = gates,
           .z_column = 24 + s.value_heads,
           .a_column = 24 + s.value_heads + values,
           .b_column = 24},
          {a_log, random_array(random, {s.value_heads}), random_array(random, {s.v_dim}, type)},
          {.key_heads = s.key_heads, .norm_eps = 1e-6f}};
}

std::vector<mx::array> two_steps(const Delta& s, KernelPath path) {
  StateFixture fixture(s.geometry, path, delta_page_bytes(s.geometry), 3);
  std::vector<mx::array> outs;
  const auto step = [&](const std::vector<int>& rows, int begin,
                        const std::vector<std::pair<int, int>>& sets) {
    const BatchLayout layout = state_layout(rows);
    GatedDeltaRows part = s.rows;
    part.qkv = rows_between(s.rows.qkv, begin, begin + layout.tokens());
    part.gates = rows_between(s.rows.gates, begin, begin + layout.tokens());
    auto [out, pages] = gated_delta(fixture.pages(), part, s.weights, s.options, layout,
                                    fixture.table({0, 1, 2}, sets));
    out.eval();
    fixture.rebind(pages);
    outs.push_back(out);
  };
  step({9, 1, 3}, 0, {{-1, 0}, {-1, 0}, {-1, 0}});
  step({1, 4, 0}, 13, {{0, 0}, {0, 1}, {0, 0}});
  step({1, 1, 2}, 18, {{0, 1}, {1, 1}, {0, 0}});
  return outs;
}

float delta_tolerance(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-4f : dtype == DType::kFloat16 ? 2e-2f : 0.13f;
}

void expect_triangle(const Delta& s, float tolerance) {
  const auto expected = two_steps(s, KernelPath::kReference);
  const auto on_cpu = two_steps(s, KernelPath::kNative);
  SimulatedMetal metal;
  const auto on_metal = two_steps(s, KernelPath::kNative);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(largest_difference(expected[i], on_cpu[i]), tolerance);
    EXPECT_LT(largest_difference(expected[i], on_metal[i]), tolerance);
  }
  EXPECT_EQ(metal.counts()["gated_delta"].launches, 3u);
  EXPECT_EQ(metal.counts()["gated_delta_norm"].launches, 3u);
}

TEST(MetalGatedDelta, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : kDtypes) {
    SCOPED_TRACE(name_of(dtype));
    expect_triangle(make_delta(dtype, {2, 4, 128, 64}, 22), delta_tolerance(dtype));
  }
}

TEST(MetalGatedDelta, EveryShapeAgrees) {
  for (const Shape& shape :
       {Shape{3, 3, 16, 48}, Shape{1, 5, 64, 16}, Shape{1, 1, 256, 256}, Shape{2, 6, 80, 112}}) {
    SCOPED_TRACE(testing::Message() << shape.k_dim << "x" << shape.v_dim);
    expect_triangle(make_delta(DType::kFloat32, shape, 22), delta_tolerance(DType::kFloat32));
  }
}

// A decay of nothing, of everything, an update of nothing.
TEST(MetalGatedDelta, AgreesWhereGatesSaturate) {
  expect_triangle(make_delta(DType::kFloat32, {1, 2, 64, 32}, 22, 60), 2e-2f);
}

std::vector<float> run_delta(const Delta& s, int tokens, const StateSteps& how) {
  return run_in_steps(StateFixture(s.geometry, KernelPath::kNative, delta_page_bytes(s.geometry),
                                   how.neighbours + 1),
                      tokens, how,
                      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
                          const mx::array& table) {
                        GatedDeltaRows rows = s.rows;
                        rows.qkv = behind_neighbours(s.rows.qkv, how.neighbours, begin, count);
                        rows.gates = behind_neighbours(s.rows.gates, how.neighbours, begin, count);
                        auto [y, pages] =
                            gated_delta(fixture.pages(), rows, s.weights, s.options, layout, table);
                        y.eval();
                        fixture.rebind(pages);
                        return y;
                      });
}

TEST(MetalGatedDelta, RowsHaveTheirBitsInEveryBatchAndChunk) {
  constexpr int kTokens = 20;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Delta s = make_delta(dtype, {1, 2, 80, 48}, kTokens);
    const SimulatedMetal metal;
    expect_bits_however_run(kTokens, {1, 2, 7, kTokens},
                            [&](const StateSteps& how) { return run_delta(s, kTokens, how); });
  }
}

// Decode and prefill read a head's state once and write it once.
TEST(MetalGatedDelta, TheStateIsReadAndWrittenOnceHoweverManyRows) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts what is read";
  for (const int tokens : {1, 12}) {
    const Delta s = make_delta(DType::kBFloat16, {1, 2, 128, 32}, 13);
    StateFixture fixture(s.geometry, KernelPath::kNative, delta_page_bytes(s.geometry), 1);
    SimulatedMetal metal;
    const auto step = [&](int begin, int count, int from) {
      GatedDeltaRows rows = s.rows;
      rows.qkv = rows_between(s.rows.qkv, begin, begin + count);
      rows.gates = rows_between(s.rows.gates, begin, begin + count);
      fixture.rebind(gated_delta(fixture.pages(), rows, s.weights, s.options, state_layout({count}),
                                 fixture.table({0}, {{from, 0}}))
                         .pages);
    };
    step(0, 1, -1);
    metal.reset();
    step(1, tokens, 0);
    const auto pages = metal.counts()["gated_delta"].arguments["pages"];
    const uint64_t state = 2 * s.geometry.head_bytes();
    EXPECT_EQ(pages.load_bytes, state);
    EXPECT_EQ(pages.store_bytes, state);
    EXPECT_EQ(metal.counts()["gated_delta"].barriers, 0u);
  }
}

}  // namespace
}  // namespace octavo
