#include "cli/distributed/pipeline_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace octavo {
namespace {

using testing::ElementsAre;

// 32 layers of 100 MB and an output matrix of 400 MB: 3.6 GB.
constexpr CostShape kCostShape{
    .layers = 32, .layer_bytes = 100e6, .head_bytes = 400e6, .row_bytes = 8192};
constexpr CostMachine kCostMachine{.read_bytes_per_second = 40e9, .memory_bytes = 8e9};
constexpr CostLink kGigabitLink{.bytes_per_second = 125e6, .round_trip_seconds = 200e-6};

TEST(PipelineCost, LayersAreDividedByShare) {
  const auto divided = [](int layers, std::vector<double> shares) {
    return divide_layers(layers, shares);
  };
  EXPECT_THAT(divided(32, {1}), ElementsAre(32));
  EXPECT_THAT(divided(32, {1, 1}), ElementsAre(16, 16));
  EXPECT_THAT(divided(32, {1, 3}), ElementsAre(8, 24));
  EXPECT_THAT(divided(30, {1, 1, 1, 1}), ElementsAre(8, 7, 8, 7));
  EXPECT_THAT(divided(4, {1, 1, 1, 1}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(divided(4, {1000, 1, 1, 1}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(divided(5, {0, 1, 0}), ElementsAre(1, 3, 1));
  EXPECT_THAT(divided(6, {0, 0}), ElementsAre(3, 3));
}

TEST(PipelineCost, OneMachineReadsItsWeightsOnce) {
  const std::array machines = {kCostMachine};
  const PipelineCost cost = pipeline_cost(kCostShape, machines, {}, 16);
  EXPECT_NEAR(cost.one_stream, 40e9 / 3.6e9, 1e-9);
  EXPECT_NEAR(cost.all_streams, 16 * 40e9 / 3.6e9, 1e-9);
  EXPECT_EQ(cost.network_share, 0);
  EXPECT_EQ(cost.bytes_per_token, 0);
  EXPECT_EQ(cost.messages_per_step, 0);
  EXPECT_TRUE(cost.fits);
}

TEST(PipelineCost, OneStreamPaysForTheNetwork) {
  const std::array machines = {kCostMachine, kCostMachine};
  const PipelineCost cost = pipeline_cost(kCostShape, machines, kGigabitLink, 1);
  // 90 ms of reading, 100 us and 65.5 us to the second machine, 100 us back.
  EXPECT_NEAR(1 / cost.one_stream, 0.090 + 265.536e-6, 1e-12);
  EXPECT_NEAR(cost.network_share, 265.536e-6 / 0.090265536, 1e-9);
  EXPECT_DOUBLE_EQ(cost.all_streams, cost.one_stream);
  EXPECT_EQ(cost.bytes_per_token, 8192);
  EXPECT_EQ(cost.messages_per_step, 3);
  EXPECT_LT(cost.one_stream, pipeline_cost(kCostShape, std::array{kCostMachine}, {}, 1).one_stream);
}

TEST(PipelineCost, ManyStreamsKeepAllMachinesBusy) {
  const std::array machines = {kCostMachine, kCostMachine};
  const PipelineCost cost = pipeline_cost(kCostShape, machines, kGigabitLink, 16);
  // The last machine reads 16 layers and the output matrix, for 8 rows at a time.
  EXPECT_THAT(cost.stages,
              ElementsAre(testing::DoubleNear(0.040, 1e-12), testing::DoubleNear(0.050, 1e-12)));
  EXPECT_NEAR(cost.all_streams, 8 / 0.050, 1e-9);
}

TEST(PipelineCost, ASlowLinkIsTheLimit) {
  const std::array machines = {kCostMachine, kCostMachine};
  const CostLink slow{.bytes_per_second = 1e6, .round_trip_seconds = 0};
  const PipelineCost cost = pipeline_cost(kCostShape, machines, slow, 64);
  EXPECT_NEAR(cost.all_streams, 1e6 / 8192, 1e-9);
  EXPECT_NEAR(cost.prompt_limit, 1e6 / 8192, 1e-9);
  // A long way does not limit the throughput of many streams, but two groups cannot fill it.
  const CostLink far{.bytes_per_second = 1e9, .round_trip_seconds = 0.1};
  const double round = 0.090 + 0.05 + 32 * 8192 / 1e9 + 0.05;
  EXPECT_NEAR(pipeline_cost(kCostShape, machines, far, 64).all_streams, 64 / round, 1e-6);
}

TEST(PipelineCost, WeightsMustFit) {
  CostMachine small = kCostMachine;
  small.memory_bytes = 3e9;
  EXPECT_FALSE(pipeline_cost(kCostShape, std::array{small}, {}, 1).fits);
  EXPECT_TRUE(pipeline_cost(kCostShape, std::array{small, small}, kGigabitLink, 1).fits);
  small.memory_bytes = 1e9;
  EXPECT_FALSE(pipeline_cost(kCostShape, std::array{small, small}, kGigabitLink, 1).fits);
}

TEST(PipelineCost, MemoryDividesTheLayers) {
  CostMachine large = kCostMachine;
  large.memory_bytes = 24e9;
  const std::array machines = {large, kCostMachine};
  EXPECT_THAT(pipeline_cost(kCostShape, machines, kGigabitLink, 1).layers, ElementsAre(24, 8));
}

}  // namespace
}  // namespace octavo
