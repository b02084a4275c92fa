#include "kernels/expert_mlp.h"

#include "kernels/linear.h"
#include "kernels/testing/experts.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

constexpr ExpertShape kShape{.experts = 6, .hidden = 256, .inner = 256};

mx::array reference_of(const mx::array& x, const Routing& routing, const ExpertMlp& mlp,
                       ExpertOptions options) {
  options.path = KernelPath::kReference;
  return expert_mlp(x, routing, mlp, options);
}

TEST(ExpertMlp, EveryFormatEqualsTheReference) {
  std::mt19937 random(1);
  for (const RandomExperts& experts : experts_of_every_format(random, kShape, true)) {
    SCOPED_TRACE(experts.gate[0].describe());
    const mx::array x = random_array(random, {9, kShape.hidden});
    const Routing routing = random_routing(random, 9, 3, kShape.experts);
    auto before = launch_counts();
    expect_close(reference_of(x, routing, experts.mlp, {}), expert_mlp(x, routing, experts.mlp),
                 2e-5f);
    auto after = launch_counts();
    EXPECT_EQ(after["expert_mlp.cpu"], before["expert_mlp.cpu"] + 1);
    EXPECT_EQ(after["expert_mlp.reference"], before["expert_mlp.reference"] + 1);
  }
}

TEST(ExpertMlp, EveryActivationWithAllThatIsAddedEqualsTheReference) {
  std::mt19937 random(2);
  for (auto [dtype, tolerance] :
       {std::pair(DType::kFloat32, 1e-5f), {DType::kFloat16, 4e-3f}, {DType::kBFloat16, 3e-2f}}) {
    for (auto activation :
         {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kBoundedSilu}) {
      const ExpertMlp mlp = odd_experts(random, 5, dtype, activation, true);
      const mx::array x = random_array(random, {7, 75}, mlx_dtype(dtype));
      const Routing routing = random_routing(random, 7, 2, 5);
      ExpertOptions options;
      expect_close(reference_of(x, routing, mlp, options), expert_mlp(x, routing, mlp, options),
                   tolerance);
      options.shared = random_array(random, {7, 75}, mlx_dtype(dtype));
      options.residual = random_array(random, {7, 75}, mlx_dtype(dtype));
      expect_close(reference_of(x, routing, mlp, options), expert_mlp(x, routing, mlp, options),
                   tolerance);
      options.shared_gate = random_array(random, {7, 1});
      expect_close(reference_of(x, routing, mlp, options), expert_mlp(x, routing, mlp, options),
                   tolerance);
    }
  }
}

TEST(ExpertMlp, OneExpertHasTheBitsOfTheLinearKernels) {
  for (cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(3);
    for (const RandomExperts& experts : experts_of_every_format(random, {4, 256, 256}, false)) {
      SCOPED_TRACE(experts.gate[0].describe());
      const mx::array x = random_array(random, {3, 256}, mx::bfloat16);
      for (int e : {0, 3}) {
        const Routing routing{mx::full({3, 1}, e, mx::int32), mx::ones({3, 1})};
        const auto i = static_cast<size_t>(e);
        const mx::array inner = gated_linear(x, {experts.gate[i], std::nullopt},
                                             {experts.up[i], std::nullopt}, Activation::kSilu);
        EXPECT_TRUE(same_bits(floats_of(linear(inner, experts.down[i])),
                              floats_of(expert_mlp(x, routing, experts.mlp))));
      }
    }
  }
}

TEST(ExpertMlp, TheSumIsInTheOrderOfExpertsWhateverTheOrderOfIds) {
  std::mt19937 random(4);
  const ExpertMlp mlp = odd_experts(random, 5, DType::kFloat32, Activation::kSilu, true);
  const mx::array x = random_array(random, {1, 75});
  const Routing rising{mx::array({0, 2, 4}, {1, 3}), mx::array({0.5f, 0.3f, 0.2f}, {1, 3})};
  const Routing mixed{mx::array({4, 0, 2}, {1, 3}), mx::array({0.2f, 0.5f, 0.3f}, {1, 3})};
  EXPECT_TRUE(
      same_bits(floats_of(expert_mlp(x, rising, mlp)), floats_of(expert_mlp(x, mixed, mlp))));
}

TEST(ExpertStack, RowsCanBePickedFromOneSourceForTwoStacks) {
  std::mt19937 random(5);
  const mx::array both = random_array(random, {6, 64});
  const WeightView source{.rows = 6, .cols = 64, .data = both.data<std::byte>()};
  const std::vector<int> even = {0, 2, 4}, odd = {1, 3, 5};
  for (const auto& order : {even, odd}) {
    ExpertStack stack = make_expert_stack(2, source, 3);
    for (int e : {0, 1}) pack_expert(stack, e, source, order);
    const mx::array expected = mx::take(both, mx::array(order.begin(), {3}), 0);
    EXPECT_EQ(largest_difference(dequantize(stack), mx::stack({expected, expected})), 0);
  }
}

}  // namespace
}  // namespace octavo
