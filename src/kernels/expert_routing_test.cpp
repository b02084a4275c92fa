#include "kernels/expert_routing.h"

#include <limits>

#include "kernels/testing/isa_scope.h"
#include "kernels/testing/routing_choices.h"

namespace octavo {
namespace {

TEST(ExpertRouting, EveryKindEqualsTheReferenceOnEveryInstructionSet) {
  for (cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(1);
    for (const ExpertChoice& choice : every_choice()) {
      for (bool biased : {false, true}) {
        RoutingOptions options;
        if (biased) options.bias = random_array(random, {choice.experts});
        if (biased) options.expert_scales = random_array(random, {choice.experts});
        const mx::array logits = random_array(random, {37, choice.experts});
        auto before = launch_counts();
        const Routing actual = route_experts(logits, choice, options);
        options.path = KernelPath::kReference;
        const Routing expected = route_experts(logits, choice, options);
        EXPECT_EQ(ints_of(actual.ids), ints_of(expected.ids));
        EXPECT_LT(largest_difference(actual.weights, expected.weights), 2e-6f);
        auto after = launch_counts();
        EXPECT_EQ(after["route_experts.cpu"], before["route_experts.cpu"] + 1);
        EXPECT_EQ(after["route_experts.reference"], before["route_experts.reference"] + 1);
      }
    }
  }
}

TEST(ExpertRouting, TiesGoToTheLowerExpert) {
  const Routing routing = route_experts(row_of({1, 3, 1, 3, 1, 1}), {.experts = 6, .top_k = 4}, {});
  EXPECT_EQ(ints_of(routing.ids), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(ExpertRouting, TiesGoToTheLowerGroup) {
  const ExpertChoice choice{
      .experts = 8, .top_k = 2, .score = ExpertScore::kSigmoid, .groups = 4, .top_groups = 2};
  const Routing routing = route_experts(row_of({0, 0, 1, 1, 1, 1, 1, 1}), choice, {});
  EXPECT_EQ(ints_of(routing.ids), (std::vector<int32_t>{2, 3}));
}

TEST(ExpertRouting, TheBiasPicksAndDoesNotWeigh) {
  RoutingOptions options;
  options.bias = mx::array({0.0f, 0.0f, 5.0f});
  const Routing routing = route_experts(
      row_of({0, 2, -1}), {.experts = 3, .top_k = 1, .score = ExpertScore::kSigmoid}, options);
  EXPECT_EQ(ints_of(routing.ids), (std::vector<int32_t>{2}));
  EXPECT_NEAR(floats_of(routing.weights)[0], 1 / (1 + std::exp(1.0f)), 1e-6f);
}

TEST(ExpertRouting, AnExpertOfAnotherGroupCountsAsZero) {
  RoutingOptions options;
  options.bias = mx::array({-2.0f, 0.0f, -0.1f, -0.1f});
  const ExpertChoice choice{.experts = 4,
                            .top_k = 2,
                            .score = ExpertScore::kSigmoid,
                            .groups = 2,
                            .top_groups = 1,
                            .group_score = GroupScore::kBest};
  const Routing routing = route_experts(row_of({0, 5, 0, 0}), choice, options);
  EXPECT_EQ(ints_of(routing.ids), (std::vector<int32_t>{1, 2}));
}

TEST(ExpertRouting, NaNAndInfinitiesStillGiveDifferentExperts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Routing routing =
      route_experts(row_of({nan, nan, -infinity, 1, nan}),
                    {.experts = 5, .top_k = 3, .score = ExpertScore::kSoftmaxOfChosen}, {});
  EXPECT_EQ(ints_of(routing.ids), (std::vector<int32_t>{0, 1, 3}));
}

TEST(ExpertRouting, ATokenHasTheSameBitsInEveryBatch) {
  std::mt19937 random(2);
  for (const ExpertChoice& choice : every_choice()) {
    const mx::array logits = random_array(random, {67, choice.experts});
    const Routing whole = route_experts(logits, choice, {});
    for (int token : {0, 15, 16, 66}) {
      const Routing alone = route_experts(
          mx::contiguous(mx::slice(logits, {token, 0}, {token + 1, choice.experts})), choice, {});
      const auto row = [&](const mx::array& all) {
        return mx::slice(all, {token, 0}, {token + 1, choice.top_k});
      };
      EXPECT_EQ(ints_of(alone.ids), ints_of(mx::contiguous(row(whole.ids))));
      EXPECT_TRUE(same_bits(floats_of(alone.weights), floats_of(row(whole.weights))));
    }
  }
}

}  // namespace
}  // namespace octavo
