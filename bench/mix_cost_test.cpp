#include "bench/mix_cost.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::bench {
namespace {

ModelDescription tiny() {
  ModelDescription model;
  model.dtype = DType::kBFloat16;
  model.plan.vocab = 100;
  model.plan.hidden = 8;
  LayerPlan layer;
  layer.attention().heads = 4;
  layer.attention().kv_heads = 2;
  layer.attention().head_dim = 16;
  layer.mlp().intermediate = 32;
  model.plan.layers = {layer};
  return model;
}

constexpr uint64_t kWeights = 1000;
constexpr StepLimits kMachine = {.read_gbps = 1, .matrix_tflops = 1e9};  // only bytes matter

MixCost cost_of(const std::vector<MixRequest>& requests, const MixOptions& options,
                const StepLimits& machine = kMachine) {
  return mix_cost(tiny(), {.always = kWeights}, requests, options, machine);
}

TEST(MixCost, OneRequestIsAPromptAndThenOneStepPerTokenButTheFirst) {
  const MixCost mix = cost_of({{5, 3}}, {});
  StepCost alone = prefill_cost(tiny(), kWeights, 0, 5, true);
  alone += decode_cost(tiny(), kWeights, 1, 6);
  alone += decode_cost(tiny(), kWeights, 1, 7);
  EXPECT_EQ(mix.steps, 3u);
  EXPECT_EQ(mix.rows, 7u);
  EXPECT_EQ(mix.total.bytes(), alone.bytes());
  EXPECT_EQ(mix.total.flops, alone.flops);
  EXPECT_DOUBLE_EQ(mix.limit_seconds, static_cast<double>(alone.bytes()) * 1e-9);
}

TEST(MixCost, WeightsAreReadOncePerStep) {
  const MixCost together = cost_of({{5, 3}, {5, 3}, {5, 3}}, {.max_num_seqs = 3});
  EXPECT_EQ(together.steps, 3u);
  EXPECT_EQ(together.total.weight_bytes, 3 * kWeights);
  const MixCost in_turn = cost_of({{5, 3}, {5, 3}, {5, 3}}, {.max_num_seqs = 1});
  EXPECT_EQ(in_turn.steps, 9u);
  EXPECT_EQ(in_turn.total.weight_bytes, 9 * kWeights);
  EXPECT_EQ(in_turn.total.kv_bytes, together.total.kv_bytes);
  EXPECT_EQ(in_turn.total.flops, together.total.flops);
  EXPECT_EQ(in_turn.rows, together.rows);
}

TEST(MixCost, ALongPromptRunsInChunksWithDecodingSequences) {
  // Steps: 4 rows of both prompts; 1 decode row with 7; 1 decode row with 1; the long one decodes.
  const MixCost mix = cost_of({{4, 3}, {12, 2}}, {.max_num_seqs = 8, .max_num_batched_tokens = 8});
  StepCost chunks = prefill_cost(tiny(), 0, 0, 4, true);
  chunks += prefill_cost(tiny(), 0, 0, 4, false);
  chunks += prefill_cost(tiny(), 0, 4, 7, false);
  chunks += decode_cost(tiny(), 0, 1, 5);
  chunks += prefill_cost(tiny(), 0, 11, 1, true);
  chunks += decode_cost(tiny(), 0, 1, 6);
  chunks += decode_cost(tiny(), 0, 1, 13);
  EXPECT_EQ(mix.steps, 4u);
  EXPECT_EQ(mix.total.kv_bytes, chunks.kv_bytes);
  EXPECT_EQ(mix.total.flops, chunks.flops);
}

TEST(MixCost, FewerRowsThanSequencesTakeTurns) {
  const MixCost mix = cost_of({{1, 4}, {1, 4}}, {.max_num_seqs = 2, .max_num_batched_tokens = 1});
  EXPECT_EQ(mix.rows, 8u);
  EXPECT_EQ(mix.steps, 8u);
}

TEST(MixCost, TheLimitIsSummedStepByStep) {
  // The prompt is compute-bound and the decoded tokens are memory-bound; the totals show neither.
  const StepLimits machine = {.read_gbps = 1, .matrix_tflops = 0.01};
  const MixCost mix = cost_of({{400, 3}}, {}, machine);
  const double prompt = prefill_cost(tiny(), kWeights, 0, 400, true).limit_seconds(machine);
  const double tokens = decode_cost(tiny(), kWeights, 1, 401).limit_seconds(machine) +
                        decode_cost(tiny(), kWeights, 1, 402).limit_seconds(machine);
  EXPECT_DOUBLE_EQ(mix.limit_seconds, prompt + tokens);
  EXPECT_GT(mix.limit_seconds, mix.total.limit_seconds(machine));
}

TEST(MixCost, EightBitPagesAreFewerBytes) {
  const std::vector<MixRequest> requests = {{100, 10}};
  EXPECT_LT(cost_of(requests, {.kv_format = KvFormat::kInt8}).total.kv_bytes,
            cost_of(requests, {}).total.kv_bytes);
}

TEST(MixCost, WithoutLimitsThereAreStepsAndNoTime) {
  EXPECT_EQ(cost_of({{5, 3}}, {}, {}).limit_seconds, 0);
  EXPECT_EQ(cost_of({}, {}).steps, 0u);
}

}  // namespace
}  // namespace octavo::bench
