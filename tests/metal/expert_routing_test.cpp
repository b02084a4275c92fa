#include "kernels/expert_routing.h"

#include <limits>

#include "kernels/testing/routing_choices.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

TEST(MetalExpertRouting, EveryKindAgreesWithTheReferenceAndTheCpu) {
  std::mt19937 random(1);
  for (const ExpertChoice& choice : every_choice()) {
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(testing::Message() << choice.experts << " " << static_cast<int>(choice.score));
      RoutingOptions options;
      if (biased) options.bias = random_array(random, {choice.experts});
      if (biased) options.expert_scales = random_array(random, {choice.experts});
      const mx::array logits = random_array(random, {5, choice.experts});
      const auto routed = [&] {
        Routing routing = route_experts(logits, choice, options);
        mx::eval(routing.ids, routing.weights);
        return routing;
      };
      const Routing on_cpu = launching("route_experts.cpu", routed);
      SimulatedMetal metal({.order = metal_sim::ThreadOrder::kShuffled});
      const Routing on_metal = routed();
      EXPECT_EQ(metal.counts()["route_experts"].launches, 1u);
      options.path = KernelPath::kReference;
      const Routing expected = launching("route_experts.reference", routed);
      EXPECT_EQ(ints_of(on_metal.ids), ints_of(expected.ids));
      EXPECT_EQ(ints_of(on_metal.ids), ints_of(on_cpu.ids));
      EXPECT_LT(largest_difference(on_metal.weights, expected.weights), 2e-6f);
    }
  }
}

TEST(MetalExpertRouting, ATokenHasTheSameBitsInEveryBatch) {
  std::mt19937 random(2);
  const SimulatedMetal metal;
  for (const ExpertChoice& choice : every_choice()) {
    const mx::array logits = random_array(random, {4, choice.experts});
    const Routing all = route_experts(logits, choice);
    const auto weights = floats_of(all.weights);
    for (int row = 0; row < 4; ++row) {
      const Routing alone = route_experts(
          mx::contiguous(mx::slice(logits, {row, 0}, {row + 1, choice.experts})), choice);
      const auto begin = weights.begin() + row * choice.top_k;
      EXPECT_TRUE(same_bits(floats_of(alone.weights), {begin, begin + choice.top_k}));
    }
  }
}

TEST(MetalExpertRouting, TiesGoToTheLowerExpertAndGroup) {
  const SimulatedMetal metal;
  EXPECT_EQ(ints_of(route_experts(row_of({1, 3, 1, 3, 1, 1}), {.experts = 6, .top_k = 4}, {}).ids),
            (std::vector<int32_t>{0, 1, 2, 3}));
  const ExpertChoice choice{
      .experts = 8, .top_k = 2, .score = ExpertScore::kSigmoid, .groups = 4, .top_groups = 2};
  EXPECT_EQ(ints_of(route_experts(row_of({0, 0, 1, 1, 1, 1, 1, 1}), choice, {}).ids),
            (std::vector<int32_t>{2, 3}));
  // More than one expert per lane.
  std::vector<float> equal(100, 0.5f);
  EXPECT_EQ(ints_of(route_experts(row_of(equal), {.experts = 100, .top_k = 3}, {}).ids),
            (std::vector<int32_t>{0, 1, 2}));
}

TEST(MetalExpertRouting, AnExpertOfAnotherGroupCountsAsZero) {
  const SimulatedMetal metal;
  RoutingOptions options;
  options.bias = mx::array({-2.0f, 0.0f, -0.1f, -0.1f});
  const ExpertChoice choice{.experts = 4,
                            .top_k = 2,
                            .score = ExpertScore::kSigmoid,
                            .groups = 2,
                            .top_groups = 1,
                            .group_score = GroupScore::kBest};
  EXPECT_EQ(ints_of(route_experts(row_of({0, 5, 0, 0}), choice, options).ids),
            (std::vector<int32_t>{1, 2}));
}

TEST(MetalExpertRouting, NaNAndInfinitiesStillSelectDistinctExperts) {
  const SimulatedMetal metal;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto score :
       {ExpertScore::kSoftmax, ExpertScore::kSigmoid, ExpertScore::kSoftmaxOfChosen}) {
    const ExpertChoice choice{.experts = 5, .top_k = 3, .score = score};
    const Routing some = route_experts(row_of({nan, nan, -infinity, 1, nan}), choice);
    EXPECT_EQ(ints_of(some.ids), (std::vector<int32_t>{0, 1, 3}));
    for (const float weight : floats_of(some.weights)) EXPECT_FALSE(std::isnan(weight));
    const Routing none = route_experts(row_of({nan, nan, nan, nan, -infinity}), choice);
    EXPECT_EQ(ints_of(none.ids), (std::vector<int32_t>{0, 1, 2}));
    for (const float weight : floats_of(none.weights)) EXPECT_FALSE(std::isnan(weight));
  }
}

}  // namespace
}  // namespace octavo
