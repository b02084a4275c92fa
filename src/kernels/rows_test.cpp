#include "kernels/activation.h"
#include "kernels/gate_rows.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/testing/support.h"

namespace octavo {
namespace {

float tolerance_of(mx::Dtype dtype) {
  return dtype == mx::float32 ? 5e-6f : dtype == mx::float16 ? 4e-3f : 3.2e-2f;
}

const std::vector<mx::Dtype> kDtypes = {mx::float32, mx::float16, mx::bfloat16};

TEST(RmsNorm, EqualsTheReference) {
  std::mt19937 random(1);
  for (mx::Dtype dtype : kDtypes) {
    for (int dim : {8, 64, 100, 576}) {
      const mx::array x = random_array(random, {7, dim}, dtype);
      const mx::array weight = random_array(random, {dim});
      EXPECT_LT(largest_difference(rms_norm(x, weight, 1e-5f),
                                   rms_norm(x, weight, 1e-5f, KernelPath::kReference)),
                tolerance_of(dtype));
    }
  }
}

TEST(GroupNorm, EqualsTheReferenceAndTheNormOfEachPart) {
  std::mt19937 random(8);
  for (mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {5, 192}, dtype);
    const NormSpec spec{.weight = random_array(random, {192}), .eps = 1e-5f};
    const mx::array y = group_norm(x, spec, 4);
    EXPECT_LT(largest_difference(y, group_norm(x, spec, 4, KernelPath::kReference)),
              tolerance_of(dtype));
    const mx::array part = mx::contiguous(mx::slice(x, {0, 48}, {5, 96}));
    const mx::array weight = mx::contiguous(mx::slice(spec.weight, {48}, {96}));
    EXPECT_EQ(largest_difference(mx::slice(y, {0, 48}, {5, 96}), rms_norm(part, weight, spec.eps)),
              0);
  }
}

TEST(Rope, EqualsTheReferenceAndLeavesTheRestAlone) {
  std::mt19937 random(2);
  const mx::array positions({0, 1, 17, 300, 4095});
  const mx::array frequencies = mx::array({1.0f, 0.31f, 0.1f, 0.0031f});
  for (mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {5, 3, 12}, dtype);
    const mx::array rotated = rope(x, positions, frequencies, 1.25f);
    EXPECT_LT(
        largest_difference(rotated, rope(x, positions, frequencies, 1.25f, KernelPath::kReference)),
        std::max(1e-5f, tolerance_of(dtype)));
    EXPECT_EQ(largest_difference(mx::slice(rotated, {0, 0, 8}, {5, 3, 12}),
                                 mx::slice(x, {0, 0, 8}, {5, 3, 12})),
              0);
  }
}

// Positions of an image's rows and columns, of a video's frames, or three times the same.
TEST(Rope, PositionsOnAxesEqualTheReferenceAndSharedOnesTheBitsOfOneAxis) {
  std::mt19937 random(12);
  const mx::array frequencies = mx::array({1.0f, 0.31f, 0.1f, 0.0031f});
  const mx::array axes({0, 2, 1, 0});
  const mx::array planes = mx::array({7, 7, 7, 9, 3, 5, 6, 100, 1000, 1, 4095, 2}, mx::Shape{3, 4});
  const mx::array positions({0, 1, 17, 300});
  const mx::array thrice = mx::contiguous(mx::broadcast_to(positions, {3, 4}));
  for (mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {4, 3, 12}, dtype);
    const mx::array rotated = rope(x, RopeArrays{planes, frequencies, axes}, 1.25f);
    EXPECT_LT(largest_difference(rotated, rope(x, RopeArrays{planes, frequencies, axes}, 1.25f,
                                               KernelPath::kReference)),
              std::max(1e-5f, tolerance_of(dtype)));
    const auto text = floats_of(rope(x, positions, frequencies, 1.25f));
    EXPECT_TRUE(same_bits(floats_of(rope(x, RopeArrays{thrice, frequencies, axes}, 1.25f)), text));
    EXPECT_TRUE(same_bits(floats_of(rope(x, RopeArrays{thrice, frequencies}, 1.25f)), text));
    EXPECT_FALSE(same_bits(floats_of(rotated), text));
  }
}

TEST(GateRows, EqualsTheReferenceOnColumnsOfWiderMatrices) {
  std::mt19937 random(6);
  auto before = launch_counts();
  for (mx::Dtype dtype : kDtypes) {
    for (Gate kind : {Gate::kPlain, Gate::kSigmoid}) {
      const Columns x{random_array(random, {5, 360}, dtype), 9};
      const Columns gate{random_array(random, {5, 351}, dtype), 18};
      EXPECT_LT(largest_difference(gate_rows(x, gate, 333, kind),
                                   gate_rows(x, gate, 333, kind, KernelPath::kReference)),
                tolerance_of(dtype));
    }
  }
  EXPECT_EQ(launch_counts()["gate_rows.cpu"], before["gate_rows.cpu"] + 6);
}

TEST(GatedActivation, EqualsTheReference) {
  std::mt19937 random(3);
  for (mx::Dtype dtype : kDtypes) {
    for (Activation activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                  Activation::kRelu, Activation::kBoundedSilu}) {
      const mx::array gate = random_array(random, {3, 333}, dtype);
      const mx::array up = random_array(random, {3, 333}, dtype);
      EXPECT_LT(largest_difference(gated_activation(gate, up, activation),
                                   gated_activation(gate, up, activation, KernelPath::kReference)),
                tolerance_of(dtype));
    }
  }
}

TEST(Activation, EqualsTheReferenceAndTheOneGatedByOnes) {
  std::mt19937 random(5);
  for (mx::Dtype dtype : kDtypes) {
    for (Activation kind :
         {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu}) {
      const mx::array x = random_array(random, {3, 333}, dtype);
      const mx::array y = activation(x, kind);
      EXPECT_LT(largest_difference(y, activation(x, kind, KernelPath::kReference)),
                tolerance_of(dtype));
      const mx::array ones = mx::ones({3, 333}, dtype);
      EXPECT_TRUE(same_bits(floats_of(y), floats_of(gated_activation(x, ones, kind))));
    }
  }
}

TEST(GatedActivation, TakesColumnsOfAWiderMatrix) {
  std::mt19937 random(4);
  for (mx::Dtype dtype : kDtypes) {
    const mx::array gate = random_array(random, {70, 250}, dtype);
    const mx::array up = random_array(random, {70, 1000}, dtype);
    for (int first : {0, 250, 333, 750}) {
      const mx::array columns =
          mx::contiguous(mx::slice(up, {0, first}, {70, first + gate.shape(1)}));
      const auto taken = floats_of(gated_activation(gate, up, first, Activation::kGeluTanh));
      EXPECT_TRUE(
          same_bits(taken, floats_of(gated_activation(gate, columns, Activation::kGeluTanh))));
      EXPECT_LT(largest_difference(gated_activation(gate, up, first, Activation::kGeluTanh),
                                   gated_activation(gate, up, first, Activation::kGeluTanh,
                                                    KernelPath::kReference)),
                tolerance_of(dtype));
    }
  }
}

TEST(Rows, BothPathsOfEveryRowOperationAreTaken) {
  auto before = launch_counts();
  const mx::array x = mx::ones({2, 1, 8});
  for (KernelPath path : {KernelPath::kNative, KernelPath::kReference}) {
    mx::eval(rms_norm(x, mx::ones({8}), 1e-5f, path),
             rope(x, mx::array({0, 1}), mx::ones({4}), 1, path),
             gated_activation(x, x, Activation::kSilu, path));
  }
  auto after = launch_counts();
  for (const char* op : {"norm", "rope", "gated_activation"}) {
    for (const char* path : {".cpu", ".reference"}) {
      const std::string key = std::string(op) + path;
      EXPECT_EQ(after[key], before[key] + 1) << key;
    }
  }
}

}  // namespace
}  // namespace octavo
