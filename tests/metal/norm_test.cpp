#include "kernels/norm.h"

#include <gmock/gmock.h>

#include "kernels/metal/norm_params.h"
#include "kernels/test_support.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;
using testing::HasSubstr;

const std::vector<mx::Dtype> kDtypes = {mx::float32, mx::float16, mx::bfloat16};

float tolerance_of(mx::Dtype dtype) {
  return dtype == mx::float32 ? 5e-6f : dtype == mx::float16 ? 4e-3f : 3.2e-2f;
}

NormSpec random_spec(std::mt19937& random, int cols, Norm kind, mx::Dtype weights) {
  NormSpec spec{.weight = random_array(random, {cols}, weights), .eps = 1e-5f, .kind = kind};
  if (kind == Norm::kLayer) spec.bias = random_array(random, {cols}, weights);
  return spec;
}

TEST(MetalNorm, AgreesWithTheReferenceAndTheCpu) {
  std::mt19937 random(1);
  for (mx::Dtype dtype : kDtypes) {
    for (mx::Dtype weights : {mx::float32, dtype}) {
      for (Norm kind : {Norm::kRms, Norm::kLayer}) {
        const int cols = 333;  // one thread has two columns, another one
        const mx::array x = random_array(random, {5, cols}, dtype);
        const NormSpec spec = random_spec(random, cols, kind, weights);
        const mx::array expected = norm(x, spec, KernelPath::kReference);
        mx::array on_cpu = norm(x, spec);
        on_cpu.eval();
        auto before = launch_counts();
        SimulatedMetal metal;
        mx::array on_metal = norm(x, spec);
        on_metal.eval();
        EXPECT_LT(largest_difference(on_cpu, expected), tolerance_of(dtype));
        EXPECT_LT(largest_difference(on_metal, expected), tolerance_of(dtype));
        EXPECT_EQ(launch_counts()["norm_rows.metal"], before["norm_rows.metal"] + 1);
        EXPECT_EQ(metal.counts()["norm_rows"].launches, 1u);
      }
    }
  }
}

TEST(MetalNorm, ARowDoesNotDependOnItsBatch) {
  std::mt19937 random(2);
  for (mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {7, 500}, dtype);
    const NormSpec spec = random_spec(random, 500, Norm::kLayer, mx::float32);
    const metal_sim::MachineOptions shuffled{.order = metal_sim::ThreadOrder::kShuffled};
    const auto all = [&] {
      SimulatedMetal metal;
      return floats_of(norm(x, spec));
    }();
    SimulatedMetal metal(shuffled);
    EXPECT_TRUE(same_bits(floats_of(norm(x, spec)), all));
    for (int row = 0; row < 7; ++row) {
      const mx::array alone = mx::contiguous(mx::slice(x, {row, 0}, {row + 1, 500}));
      const auto begin = all.begin() + row * 500;
      EXPECT_TRUE(same_bits(floats_of(norm(alone, spec)), {begin, begin + 500})) << row;
    }
  }
}

// What the simulator says of a layer norm of 4 rows of 300 floats, with the kernel's text changed
// in one place.
std::string fault_of_changed_text(const std::string& from, const std::string& to) {
  const metal::KernelSource& kernel = metal::find_kernel("norm_rows");
  std::string text = metal::instance_text(kernel, std::vector<std::string>{"float", "float"});
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  std::vector<float> x(1200, 1), weight(300, 1), bias(300, 1), out(1200);
  metal::NormParams params{.cols = 300, .eps = 1e-5f};
  metal_sim::TextLaunch launch{.kernel = "norm_rows",
                               .instance = "norm_rows_float_float",
                               .text = text,
                               .constants = {{0, 1}, {1, 1}},
                               .groups = {4},
                               .threads = {metal::kNormThreads}};
  const auto add = [&](size_t index, auto* data, size_t bytes) {
    const metal::Parameter& parameter = kernel.parameters[index];
    launch.arguments.push_back({parameter.index, std::string(parameter.name), parameter.kind,
                                reinterpret_cast<std::byte*>(data), bytes});
  };
  add(0, x.data(), x.size() * sizeof(float));
  add(1, weight.data(), weight.size() * sizeof(float));
  add(2, bias.data(), bias.size() * sizeof(float));
  add(3, out.data(), out.size() * sizeof(float));
  add(4, &params, sizeof params);
  try {
    metal_sim::MetalSimulator().run_text(launch);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(MetalNorm, SeededFaultsAreFound) {
  EXPECT_EQ(fault_of_changed_text("float mean = 0;", "float mean = 0;"), "");
  EXPECT_THAT(fault_of_changed_text("threadgroup_barrier(mem_flags::mem_threadgroup);", ""),
              HasSubstr("uninitialised threadgroup memory"));
  EXPECT_THAT(fault_of_changed_text("  threadgroup_barrier(mem_flags::mem_threadgroup);\n  return",
                                    "  return"),
              HasSubstr("race: write of byte 0 of 'parts'"));
  EXPECT_THAT(fault_of_changed_text("i < cols", "i <= cols"),
              HasSubstr("out-of-bounds device read"));
  EXPECT_THAT(fault_of_changed_text("out[i] = T(value)", "out[i / 2] = T(value)"),
              HasSubstr("race: write of byte"));
}

}  // namespace
}  // namespace octavo
