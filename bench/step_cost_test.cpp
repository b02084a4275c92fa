#include "bench/step_cost.h"

#include <gtest/gtest.h>

namespace octavo::bench {
namespace {

// One layer, small enough to count by hand.
ModelDescription tiny(int window) {
  ModelDescription model;
  model.dtype = DType::kBFloat16;
  model.plan.vocab = 100;
  model.plan.hidden = 8;
  LayerPlan layer;
  layer.attention().heads = 4;
  layer.attention().kv_heads = 2;
  layer.attention().head_dim = 16;
  layer.attention().window = window;
  layer.mlp().intermediate = 32;
  model.plan.layers = {layer};
  return model;
}

constexpr uint64_t kLayerProducts = 8 * (12 * 16 + 3 * 32);  // q, o: 4 heads; k, v: 2
constexpr uint64_t kTokenBytes = 2 * 2 * 16 * 2;             // K and V, 2 heads, bfloat16

TEST(StepCost, DecodeCountsEachSequencesContext) {
  const StepCost cost = decode_cost(tiny(0), 1000, 3, 10);
  EXPECT_EQ(cost.weight_bytes, 1000u);
  EXPECT_EQ(cost.kv_bytes, 3 * 10 * kTokenBytes);
  EXPECT_EQ(cost.flops, 2 * 3 * (kLayerProducts + 100 * 8 + 10 * 2 * 4 * 16));
}

TEST(StepCost, PrefillIsCausalAndHasOneRowOfLogits) {
  const StepCost cost = prefill_cost(tiny(0), 1000, 2, 3, true);
  EXPECT_EQ(cost.kv_bytes, 5 * kTokenBytes);
  EXPECT_EQ(cost.flops, 2 * (3 * kLayerProducts + 100 * 8 + (3 + 4 + 5) * 2 * 4 * 16));
  EXPECT_EQ(prefill_cost(tiny(0), 1000, 2, 3, false).flops, cost.flops - 2 * 100 * 8);
}

TEST(StepCost, AWindowBoundsWhatIsReadAndComputed) {
  const StepCost cost = prefill_cost(tiny(4), 1000, 10, 2, false);
  EXPECT_EQ(cost.kv_bytes, (3 + 2) * kTokenBytes);
  EXPECT_EQ(cost.flops, 2 * (2 * kLayerProducts + (4 + 4) * 2 * 4 * 16));
}

TEST(StepCost, AStepReadsTheExpertsOfItsTokens) {
  ModelDescription model = tiny(0);
  MoePlan moe;
  moe.choice.experts = 16;
  moe.choice.top_k = 4;
  moe.intermediate = 32;
  moe.shared_intermediate = 24;
  model.plan.layers[0].ffn = moe;
  const uint64_t mixer = kLayerProducts - 3 * 8 * 32;
  const uint64_t ffn = 8 * 16 + 4 * 3 * 8 * 32 + 3 * 8 * 24;
  EXPECT_EQ(prefill_cost(model, 0, 0, 1, false).flops, 2 * (mixer + ffn + 2 * 4 * 16));

  const StepWeights weights{.always = 100, .experts = 1600, .moe = moe};
  EXPECT_EQ(weights.read_by(1), 100u + 400u);
  EXPECT_EQ(weights.read_by(2), 100u + 700u);
  EXPECT_EQ(weights.read_by(1000), 100u + 1600u);
  EXPECT_EQ((StepWeights{.always = 100}.read_by(7)), 100u);
}

TEST(StepCost, TheLimitIsTheLongerOfMemoryAndCompute) {
  const StepCost cost{.weight_bytes = 3'000'000'000, .kv_bytes = 1'000'000'000, .flops = 1};
  EXPECT_DOUBLE_EQ(cost.limit_seconds({.read_gbps = 2, .matrix_tflops = 1}), 2.0);
  const StepCost sums{.weight_bytes = 1, .kv_bytes = 0, .flops = 6'000'000'000'000};
  EXPECT_DOUBLE_EQ(sums.limit_seconds({.read_gbps = 2, .matrix_tflops = 2}), 3.0);
  EXPECT_EQ(cost.limit_seconds({.read_gbps = 2, .matrix_tflops = 0}), 0.0);
}

}  // namespace
}  // namespace octavo::bench
