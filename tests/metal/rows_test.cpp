// The row operations: activation, sum, gates, rope.
#include "kernels/activation.h"
#include "kernels/add_rows.h"
#include "kernels/gate_rows.h"
#include "kernels/rope.h"
#include "kernels/testing/support.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

const std::vector<mx::Dtype> kDtypes = {mx::float32, mx::float16, mx::bfloat16};

// Both round once, at the end: one unit in the last place of values up to about 8.
float tolerance_of(mx::Dtype dtype) {
  return dtype == mx::float32 ? 5e-6f : dtype == mx::float16 ? 8e-3f : 6.4e-2f;
}

// make(path) on the reference, the CPU and simulated Metal, with one launch of `kernel`.
template <typename Make>
void expect_triangle(const std::string& operation, const std::string& kernel, float tolerance,
                     const Make& make) {
  const mx::array expected =
      launching(operation + ".reference", [&] { return make(KernelPath::kReference); });
  const mx::array on_cpu = launching(operation + ".cpu", [&] { return make(KernelPath::kNative); });
  EXPECT_LT(largest_difference(on_cpu, expected), tolerance);
  SimulatedMetal metal;
  mx::array on_metal = make(KernelPath::kNative);
  on_metal.eval();
  EXPECT_LT(largest_difference(on_metal, expected), tolerance);
  EXPECT_EQ(metal.counts()[kernel].launches, 1u);
}

// of(array) has the same bits for all rows together and for each row alone.
template <typename Of>
void expect_rows_for_themselves(const mx::array& x, const Of& of) {
  const SimulatedMetal metal;
  const auto all = floats_of(of(x, 0));
  const auto width = static_cast<std::ptrdiff_t>(all.size()) / x.shape(0);
  for (int row = 0; row < x.shape(0); ++row) {
    mx::Shape first(x.ndim(), 0), last = x.shape();
    first[0] = row;
    last[0] = row + 1;
    const auto begin = all.begin() + row * width;
    EXPECT_TRUE(same_bits(floats_of(of(mx::contiguous(mx::slice(x, first, last)), row)),
                          {begin, begin + width}));
  }
}

TEST(MetalRows, GatedActivationAgrees) {
  std::mt19937 random(1);
  for (const mx::Dtype dtype : kDtypes) {
    for (const auto kind : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                            Activation::kRelu, Activation::kBoundedSilu}) {
      SCOPED_TRACE(static_cast<int>(kind));
      // More than one tile, the last one incomplete; values that reach the bounds.
      const mx::array gate =
          mx::multiply(random_array(random, {2, 700}, dtype), mx::array(4.0f, dtype));
      const mx::array up =
          mx::multiply(random_array(random, {2, 733}, dtype), mx::array(4.0f, dtype));
      mx::eval(gate, up);
      expect_triangle("gated_activation", "gated_activation", 20 * tolerance_of(dtype),
                      [&](KernelPath path) { return gated_activation(gate, up, 33, kind, path); });
    }
  }
}

TEST(MetalRows, ActivationsWithoutAGateAgree) {
  std::mt19937 random(9);
  for (const mx::Dtype dtype : kDtypes) {
    for (const auto kind :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
      SCOPED_TRACE(static_cast<int>(kind));
      const mx::array x =
          mx::multiply(random_array(random, {2, 700}, dtype), mx::array(4.0f, dtype));
      mx::eval(x);
      expect_triangle("gated_activation", "gated_activation", 4 * tolerance_of(dtype),
                      [&](KernelPath path) { return activation(x, kind, path); });
    }
  }
}

TEST(MetalRows, RopeOnAxesAgrees) {
  std::mt19937 random(10);
  const mx::array frequencies({1.0f, 0.31f, 0.1f, 0.0031f});
  const mx::array axes({0, 2, 1, 0});
  const mx::array planes = mx::array({7, 7, 9, 3, 6, 100, 1, 95, 2}, mx::Shape{3, 3});
  for (const mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {3, 6, 96}, dtype);
    expect_triangle("rope", "rope_rows", std::max(2e-5f, 2 * tolerance_of(dtype)),
                    [&](KernelPath path) {
                      return rope(x, RopeArrays{planes, frequencies, axes}, 1.25f, path);
                    });
  }
}

TEST(MetalRows, GateRowsAgree) {
  std::mt19937 random(2);
  for (const mx::Dtype dtype : kDtypes) {
    for (const Gate kind : {Gate::kPlain, Gate::kSigmoid}) {
      const Columns x{random_array(random, {3, 560}, dtype), 9};
      const Columns gate{random_array(random, {3, 551}, dtype), 18};
      expect_triangle("gate_rows", "gate_rows", 2 * tolerance_of(dtype),
                      [&](KernelPath path) { return gate_rows(x, gate, 533, kind, path); });
    }
  }
}

std::vector<AddRowsOptions> sum_options(std::mt19937& random, int dim, mx::Dtype weights) {
  const mx::array weight = random_array(random, {dim}, weights);
  const mx::array bias = random_array(random, {dim}, weights);
  const NormSpec rms{.weight = weight, .eps = 1e-6f};
  const NormSpec layer{.weight = weight, .eps = 1e-5f, .kind = Norm::kLayer, .bias = bias};
  return {{.scale = 0.22f, .out_scale = 0.5f},
          {.norm = rms},
          {.norm = layer, .scale = 0.5f, .out_scale = 1.75f}};
}

TEST(MetalRows, SumsAgree) {
  std::mt19937 random(3);
  for (const mx::Dtype dtype : kDtypes) {
    const int dim = 600;
    const mx::array x = random_array(random, {3, dim}, dtype);
    const mx::array y = random_array(random, {3, dim}, dtype);
    for (AddRowsOptions options : sum_options(random, dim, dtype)) {
      const char* kernel = options.norm ? "add_normed_rows" : "add_rows";
      expect_triangle("add_rows", kernel, 2 * tolerance_of(dtype), [&](KernelPath path) {
        options.path = path;
        return add_rows(x, y, options);
      });
    }
  }
}

TEST(MetalRows, Float16SumsSaturateAndKeepNaN) {
  const SimulatedMetal metal;
  const mx::array x = mx::astype(mx::array({65000.0f, -65000.0f, NAN, 1.0f}), mx::float16);
  const mx::array y = mx::astype(mx::array({60000.0f, -60000.0f, 0.0f, 1.0f}), mx::float16);
  const auto sum = floats_of(add_rows(mx::reshape(x, {1, 4}), mx::reshape(y, {1, 4})));
  EXPECT_EQ(sum[0], 65504.0f);
  EXPECT_EQ(sum[1], -65504.0f);
  EXPECT_TRUE(std::isnan(sum[2]));
  EXPECT_EQ(sum[3], 2.0f);
}

TEST(MetalRows, BoundedActivationKeepsNaN) {
  const SimulatedMetal metal;
  const mx::array gate = mx::array({NAN, 1.0f}, {1, 2});
  const mx::array up = mx::array({1.0f, NAN}, {1, 2});
  for (float number : floats_of(gated_activation(gate, up, Activation::kBoundedSilu)))
    EXPECT_TRUE(std::isnan(number));
}

TEST(MetalRows, RopeAgreesAndKeepsOtherDimensions) {
  std::mt19937 random(4);
  const mx::array positions({0, 1, 17, 300, 130000});
  std::vector<float> turns;
  for (int i = 0; i < 36; ++i) turns.push_back(std::pow(0.8f, static_cast<float>(i)));
  const mx::array frequencies(turns.begin(), {36}, mx::float32);
  for (const mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {5, 6, 96}, dtype);
    expect_triangle("rope", "rope_rows", std::max(2e-5f, 2 * tolerance_of(dtype)),
                    [&](KernelPath path) { return rope(x, positions, frequencies, 1.25f, path); });
    const SimulatedMetal metal;
    EXPECT_EQ(largest_difference(
                  mx::slice(rope(x, positions, frequencies, 1.25f), {0, 0, 72}, {5, 6, 96}),
                  mx::slice(x, {0, 0, 72}, {5, 6, 96})),
              0);
  }
}

TEST(MetalRows, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(5);
  const mx::array frequencies = mx::array({1.0f, 0.31f, 0.1f, 0.0031f});
  for (const mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {5, 600}, dtype);
    for (const AddRowsOptions& options : sum_options(random, 600, mx::float32)) {
      expect_rows_for_themselves(
          x, [&](const mx::array& rows, int) { return add_rows(rows, rows, options); });
    }
    expect_rows_for_themselves(x, [&](const mx::array& rows, int) {
      return gated_activation(rows, rows, Activation::kGeluTanh);
    });
    expect_rows_for_themselves(x, [&](const mx::array& rows, int) {
      return gate_rows({rows, 100}, {rows, 7}, 400, Gate::kSigmoid);
    });
    expect_rows_for_themselves(
        random_array(random, {5, 3, 12}, dtype), [&](const mx::array& rows, int first) {
          const int count = rows.shape(0);
          const auto at = mx::slice(mx::array({3, 900, 17, 42, 70000}), {first}, {first + count});
          return rope(rows, mx::contiguous(at), frequencies);
        });
  }
}

// Each element is read and written once; the norm reads its row twice.
TEST(MetalRows, NothingIsReadTwice) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  std::mt19937 random(6);
  for (const int rows : {1, 4}) {
    const uint64_t bytes = static_cast<uint64_t>(rows) * 1024 * 2;
    const mx::array x = random_array(random, {rows, 1024}, mx::float16);
    const AddRowsOptions normed = sum_options(random, 1024, mx::float16)[1];
    SimulatedMetal metal;
    mx::eval(gated_activation(x, x, Activation::kSilu), gate_rows({x}, {x}, 1024, Gate::kSigmoid),
             add_rows(x, x), add_rows(x, x, normed));
    auto counts = metal.counts();
    for (const char* kernel : {"gated_activation", "gate_rows", "add_rows", "add_normed_rows"}) {
      SCOPED_TRACE(kernel);
      const uint64_t twice = std::string(kernel) == "add_normed_rows" ? 2 : 1;
      uint64_t loads = 0;
      for (const char* name : {"gate", "x"})
        if (counts[kernel].arguments.contains(name))
          loads += counts[kernel].arguments[name].load_bytes;
      for (const char* name : {"up", "y"})
        if (counts[kernel].arguments.contains(name))
          loads += counts[kernel].arguments[name].load_bytes;
      EXPECT_EQ(loads, (1 + twice) * bytes);
      EXPECT_EQ(counts[kernel].arguments["out"].store_bytes, bytes);
    }
  }
}

}  // namespace
}  // namespace octavo
