#include "cli/distributed/tensor_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace octavo {
namespace {

using testing::ElementsAre;

// 32 layers of 100 MB and an output matrix of 400 MB; 8 KV heads.
constexpr CostShape kTensorWeights{
    .layers = 32, .layer_bytes = 100e6, .head_bytes = 400e6, .row_bytes = 8192};
constexpr CostMachine kTensorMachine{.read_bytes_per_second = 40e9, .memory_bytes = 8e9};
constexpr CostLink kFastLink{.bytes_per_second = 5e9, .round_trip_seconds = 20e-6};

TensorShape tensor_shape() {
  TensorShape shape{
      .vocab = 100'000, .divided_bytes = 3.6e9, .whole_bytes = 400e6, .most_ranks = 8};
  for (int layer = 0; layer < 32; ++layer)
    for (const double columns : {4096, 4096, 14336, 4096}) shape.gathers.push_back(columns);
  return shape;
}

TensorCost cost_of(size_t machines, const CostLink& link, int sequences) {
  const std::vector<CostMachine> equal(machines, kTensorMachine);
  return tensor_cost(kTensorWeights, tensor_shape(), equal, link, sequences);
}

TEST(TensorCost, OneMachineReadsItsWeightsOnce) {
  const TensorCost cost = cost_of(1, {}, 16);
  EXPECT_NEAR(cost.one_stream, 40e9 / 3.6e9, 1e-9);
  EXPECT_NEAR(cost.all_streams, 16 * 40e9 / 3.6e9, 1e-9);
  EXPECT_EQ(cost.network_share, 0);
  EXPECT_EQ(cost.bytes_per_token, 0);
  EXPECT_EQ(cost.calls_per_token, 0);
  EXPECT_NEAR(cost.memory_bytes, 4.0e9, 1);
}

TEST(TensorCost, OneStreamGetsFasterOnAFastNetwork) {
  const TensorCost cost = cost_of(4, kFastLink, 16);
  const double columns = 32 * 26624.0;
  const double row = 3.0 / 4 * columns * 2;
  const double logits = 3.0 / 4 * 100'000 * 4;
  // 22.5 ms of reading, 130 times 10 us, and the bytes.
  EXPECT_NEAR(1 / cost.one_stream, 0.0225 + 130 * 10e-6 + (row + logits) / 5e9, 1e-12);
  EXPECT_NEAR(16 / cost.all_streams, 0.0225 + 130 * 10e-6 + 16 * (row + logits) / 5e9, 1e-12);
  EXPECT_NEAR(cost.network_share, 1 - 0.0225 * cost.one_stream, 1e-12);
  EXPECT_NEAR(cost.bytes_per_token, 3 * columns * 2 + logits + 3 * 4, 1e-6);
  EXPECT_EQ(cost.calls_per_token, 4 * 32 + 2);
  EXPECT_NEAR(cost.prompt_limit, 5e9 / row, 1e-6);
  EXPECT_GT(cost.one_stream, 2 * cost_of(1, {}, 1).one_stream);
}

TEST(TensorCost, ASlowNetworkMakesItSlower) {
  const CostLink slow{.bytes_per_second = 125e6, .round_trip_seconds = 1e-3};
  EXPECT_LT(cost_of(2, slow, 1).one_stream, cost_of(1, {}, 1).one_stream);
  EXPECT_GT(cost_of(2, slow, 1).network_share, 0.5);
}

TEST(TensorCost, TheSlowestMachineSetsThePace) {
  CostMachine slow = kTensorMachine;
  slow.read_bytes_per_second = 10e9;
  const std::array machines = {kTensorMachine, slow};
  const CostLink none{.bytes_per_second = 1e18, .round_trip_seconds = 0};
  EXPECT_NEAR(tensor_cost(kTensorWeights, tensor_shape(), machines, none, 1).one_stream,
              10e9 / 1.8e9, 1e-6);
}

TEST(TensorCost, WeightsMustFitTheSmallestMachineAndRanksTheHeads) {
  CostMachine small = kTensorMachine;
  small.memory_bytes = 2.5e9;  // for 1.8 GB and 0.4 GB of embeddings: more than 85%
  const std::array machines = {kTensorMachine, small};
  EXPECT_FALSE(tensor_cost(kTensorWeights, tensor_shape(), machines, kFastLink, 1).fits);
  small.memory_bytes = 2.7e9;
  EXPECT_TRUE(
      tensor_cost(kTensorWeights, tensor_shape(), std::array{kTensorMachine, small}, kFastLink, 1)
          .fits);
  EXPECT_TRUE(cost_of(8, kFastLink, 1).fits);
  EXPECT_FALSE(cost_of(9, kFastLink, 1).fits);
}

TEST(TensorCost, ColumnsAreThoseOfThePlan) {
  DecoderPlan plan;
  plan.hidden = 100;
  LayerPlan dense;
  dense.attention().heads = 8;
  dense.attention().kv_heads = 2;
  dense.attention().head_dim = 16;
  dense.mlp().intermediate = 300;
  LayerPlan experts;
  experts.mixer = MlaPlan{.heads = 4, .v_dim = 32};
  experts.ffn =
      MoePlan{.choice = {.experts = 16, .top_k = 3}, .intermediate = 50, .shared_intermediate = 20};
  LayerPlan recurrent;
  recurrent.mixer = ShortConvPlan{.channels = 64};
  recurrent.ffn = AbsentPlan{};
  plan.layers = {dense, experts, recurrent};
  EXPECT_THAT(gathered_columns(plan),
              ElementsAre(128, 100, 300, 100, 128, 100, 170, 100, 192, 100));
  EXPECT_EQ(most_tensor_ranks(plan), 2);
  plan.layers = {recurrent};
  EXPECT_EQ(most_tensor_ranks(plan), 64);
}

}  // namespace
}  // namespace octavo
