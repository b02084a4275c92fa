#include "kernels/expert_mlp.h"

#include <functional>

#include "kernels/expert_halves.h"
#include "kernels/linear.h"
#include "kernels/testing/experts.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {
namespace {

mx::array metal_experts(const mx::array& x, const Routing& routing, const ExpertMlp& mlp,
                        const ExpertOptions& options = {}, uint64_t products = 2) {
  return products_on_metal(products, [&] { return expert_mlp(x, routing, mlp, options); });
}

void expect_triangle(const mx::array& x, const Routing& routing, const ExpertMlp& mlp,
                     ExpertOptions options = {}, uint64_t products = 2) {
  options.path = KernelPath::kReference;
  const auto made = [&] { return expert_mlp(x, routing, mlp, options); };
  const mx::array expected = launching("expert_mlp.reference", made);
  options.path = KernelPath::kNative;
  const float tolerance = 2 * tolerance_of(dtype_of(x));
  expect_close(expected, launching("expert_mlp.cpu", made), tolerance);
  expect_close(expected, metal_experts(x, routing, mlp, options, products), tolerance);
}

// linear_test covers the formats; this checks that each packing locates its experts.
TEST(MetalExpertMlp, DenseAndQuantisedExpertsAgree) {
  std::mt19937 random(1);
  constexpr int kHidden = 256, kInner = 256, kExperts = 4;
  const std::vector<std::function<Weight()>> makers = {
      [&] { return random_dense(random, kInner, kHidden, DType::kBFloat16); },
      [&] { return random_affine(random, kInner, kHidden, 4, 64, DType::kBFloat16); },
      [&] { return random_mxfp4(random, kInner, kHidden); },
      [&] { return random_gguf(random, kInner, kHidden, WeightFormat::kQ6_K); }};
  for (const auto& make : makers) {
    const auto projection = [&] {
      std::vector<Weight> weights;
      for (int e = 0; e < kExperts; ++e) weights.push_back(make());
      return random_projection(random, weights, false);
    };
    const ExpertMlp mlp{projection(), projection(), projection()};
    SCOPED_TRACE(mlp.gate.weight.describe());
    const Routing routing = random_routing(random, 3, 2, kExperts);
    // Gate and up of four groups per unit have a launch each.
    const uint64_t products = mlp.gate.weight.layout.group_size == 16 ? 3 : 2;
    expect_triangle(random_array(random, {3, kHidden}, mx::bfloat16), routing, mlp, {}, products);
  }
}

TEST(MetalExpertMlp, EveryActivationAgreesWithAllOptions) {
  std::mt19937 random(2);
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (auto activation :
         {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kBoundedSilu}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << static_cast<int>(activation));
      const ExpertMlp mlp = odd_experts(random, 5, dtype, activation, true);
      const mx::array x = random_array(random, {7, 75}, mlx_dtype(dtype));
      const Routing routing = random_routing(random, 7, 2, 5);
      const uint64_t products =
          dtype == DType::kFloat32 ? 3 : 2;  // gate and up separately, or together
      ExpertOptions options;
      options.shared = random_array(random, {7, 75}, mlx_dtype(dtype));
      options.residual = random_array(random, {7, 75}, mlx_dtype(dtype));
      expect_triangle(x, routing, mlp, options, products);
      options.shared_gate = random_array(random, {7, 1});
      expect_triangle(x, routing, mlp, options, products);
    }
  }
}

// Groups of more than 8 and more than 32 rows: large tiles, and gate and up in different formats.
TEST(MetalExpertMlp, ManyTokensAgree) {
  std::mt19937 random(3);
  ExpertMlp mlp = odd_experts(random, 3, DType::kBFloat16, Activation::kSilu, false);
  const mx::array x = random_array(random, {50, 75}, mx::bfloat16);
  const Routing routing = random_routing(random, 50, 2, 3);
  expect_triangle(x, routing, mlp);
  std::vector<Weight> other;
  for (int e = 0; e < 3; ++e) other.push_back(random_dense(random, 41, 75, DType::kFloat16));
  mlp.up = random_projection(random, other, false);
  expect_triangle(x, routing, mlp, {}, 3);
}

TEST(MetalExpertMlp, OneExpertHasTheBitsOfTheLinearKernels) {
  std::mt19937 random(4);
  std::vector<Weight> gate, up, down;
  for (int e = 0; e < 3; ++e) {
    gate.push_back(random_affine(random, 64, 96, 4, 32, DType::kBFloat16));
    up.push_back(random_affine(random, 64, 96, 4, 32, DType::kBFloat16));
    down.push_back(random_affine(random, 96, 64, 4, 32, DType::kBFloat16));
  }
  const ExpertMlp mlp{
      {stack_of(gate), std::nullopt}, {stack_of(up), std::nullopt}, {stack_of(down), std::nullopt}};
  const mx::array x = random_array(random, {3, 96}, mx::bfloat16);
  for (int e : {0, 2}) {
    mx::array ids = mx::full({3, 1}, e, mx::int32), ones = mx::ones({3, 1});
    mx::eval(ids, ones);
    const auto i = static_cast<size_t>(e);
    const mx::array inner = on_metal([&] {
      return gated_linear(x, {gate[i], std::nullopt}, {up[i], std::nullopt}, Activation::kSilu);
    });
    const mx::array expected = on_metal([&] { return linear(inner, down[i]); });
    EXPECT_TRUE(same_bits(floats_of(expected), floats_of(metal_experts(x, {ids, ones}, mlp))));
  }
}

TEST(MetalExpertMlp, ATokenHasTheSameBitsInEveryBatch) {
  std::mt19937 random(5);
  const ExpertMlp mlp = odd_experts(random, 3, DType::kFloat16, Activation::kSilu, false);
  const mx::array x = random_array(random, {33, 75}, mx::float16);
  const Routing routing = random_routing(random, 33, 2, 3);
  const auto of_rows = [&](int begin, int end) {
    return floats_of(metal_experts(
        rows_of(x, begin, end),
        {rows_of(routing.ids, begin, end), rows_of(routing.weights, begin, end)}, mlp));
  };
  const auto whole = of_rows(0, 33);
  for (int count : {1, 2, 9, 20}) {
    for (int begin : {0, 13, 33 - count}) {
      const auto part = of_rows(begin, begin + count);
      const auto at = whole.begin() + begin * 75;
      EXPECT_TRUE(same_bits(part, {at, at + count * 75})) << begin << " " << count;
    }
  }
}

TEST(MetalExpertMlp, TheSumFollowsExpertOrderNotIdOrder) {
  std::mt19937 random(6);
  const ExpertMlp mlp = odd_experts(random, 5, DType::kFloat32, Activation::kSilu, false);
  const mx::array x = random_array(random, {1, 75});
  const Routing rising{mx::array({0, 2, 4}, {1, 3}), mx::array({0.5f, 0.3f, 0.2f}, {1, 3})};
  const Routing mixed{mx::array({4, 0, 2}, {1, 3}), mx::array({0.2f, 0.5f, 0.3f}, {1, 3})};
  EXPECT_TRUE(same_bits(floats_of(metal_experts(x, rising, mlp, {}, 3)),
                        floats_of(metal_experts(x, mixed, mlp, {}, 3))));
}

TEST(MetalExpertHalves, HaveTheBitsOfExpertMlp) {
  std::mt19937 random(7);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const ExpertMlp mlp = odd_experts(random, 5, dtype, Activation::kSilu, true);
    const uint64_t gated = dtype == DType::kFloat32 ? 2 : 1;  // gate and up separately, or together
    for (const int tokens : {1, 7, 50}) {
      const mx::array x = random_array(random, {tokens, 75}, mlx_dtype(dtype));
      const Routing routing = random_routing(random, tokens, 2, 5);
      ExpertOptions options;
      options.shared = random_array(random, {tokens, 75}, x.dtype());
      options.shared_gate = random_array(random, {tokens, 1});
      options.residual = random_array(random, {tokens, 75}, x.dtype());
      const auto activations = [&] {
        return expert_activations(x, routing, mlp.gate, mlp.up, mlp.activation);
      };
      const mx::array inner = products_on_metal(gated, activations);
      expect_close(launching("expert_activations.cpu", activations), inner,
                   2 * tolerance_of(dtype));
      const mx::array outputs =
          products_on_metal(1, [&] { return expert_outputs(inner, routing, mlp.down, options); });
      EXPECT_TRUE(same_bits(floats_of(metal_experts(x, routing, mlp, options, gated + 1)),
                            floats_of(outputs)));
    }
  }
}

}  // namespace
}  // namespace octavo::metal_linear
