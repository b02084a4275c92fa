#include "kernels/norm.h"

#include "kernels/testing/support.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

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
        const mx::array expected =
            launching("norm.reference", [&] { return norm(x, spec, KernelPath::kReference); });
        const mx::array on_cpu = launching("norm.cpu", [&] { return norm(x, spec); });
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

TEST(MetalNorm, GroupsOfARowAgree) {
  std::mt19937 random(5);
  for (mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {5, 192}, dtype);
    const NormSpec spec = random_spec(random, 192, Norm::kRms, mx::float32);
    const mx::array expected = group_norm(x, spec, 4, KernelPath::kReference);
    SimulatedMetal metal;
    EXPECT_LT(largest_difference(group_norm(x, spec, 4), expected), tolerance_of(dtype));
    EXPECT_EQ(metal.counts()["norm_rows"].launches, 1u);
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

}  // namespace
}  // namespace octavo
