#include "engine/tensor/plan_shares.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "engine/plan_engine.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kShareMiB = uint64_t{1} << 20;

ModelDescription share_model(int kv_heads) {
  ModelDescription model;
  model.plan.vocab = 1000;
  model.plan.hidden = 512;
  model.plan.max_context = 4096;
  LayerPlan layer;
  layer.attention().heads = 2 * kv_heads;
  layer.attention().kv_heads = kv_heads;
  layer.attention().head_dim = 64;
  layer.mlp().intermediate = 1024;
  model.plan.layers.assign(4, layer);
  model.weights_bytes = 64 * kShareMiB;
  return model;
}

EngineOptions share_options(uint64_t limit) {
  return {.memory_fraction = 1, .memory_limit = limit, .max_num_seqs = 4};
}

std::string refusal_of(const ModelDescription& model, int ranks) {
  try {
    part_of_rank(model, ranks, 0);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(PlanShares, ARankHasWholeGroupsOfHeads) {
  const ModelDescription part = part_of_rank(share_model(3), 2, 40 * kShareMiB);
  EXPECT_EQ(part.plan.layers[0].attention().kv_heads, 2);
  EXPECT_EQ(part.plan.layers[0].attention().heads, 4);
  EXPECT_EQ(part.weights_bytes, 40 * kShareMiB);
}

TEST(PlanShares, ANormOverAllHeadsKeepsThemTogether) {
  ModelDescription model = share_model(1);
  for (LayerPlan& layer : model.plan.layers) layer.attention().norms_rows = true;
  EXPECT_EQ(part_of_rank(model, 2, 0).plan.layers[0].attention().kv_heads, 1);
}

TEST(PlanShares, MoreRanksThanHeadsAreRefusedWithWhatWorks) {
  EXPECT_EQ(refusal_of(share_model(3), 4),
            "--tensor-parallel-size 4: a layer of this model has 3 KV heads, and a head cannot be "
            "divided; use --tensor-parallel-size 3 or less, or --pipeline-parallel-size 4");
  EXPECT_EQ(refusal_of(share_model(1), 2),
            "--tensor-parallel-size 2: a layer of this model has 1 KV head, and a head cannot be "
            "divided; use --pipeline-parallel-size 2");
}

TEST(PlanShares, PagesAreThoseOfTheRankWithTheLeastMemory) {
  const ModelDescription part = part_of_rank(share_model(4), 3, 32 * kShareMiB);
  const EngineOptions options = share_options(512 * kShareMiB);
  const std::vector<uint64_t> budgets = {0, 512 * kShareMiB, 360 * kShareMiB};
  const TensorPlan plan = plan_shares(part, options, budgets);
  ASSERT_EQ(plan.ranks.size(), 3);
  for (const MemoryPlan& rank : plan.ranks) EXPECT_EQ(rank.page_count, plan.page_count());
  const std::vector<uint64_t> alike = {0, 512 * kShareMiB, 512 * kShareMiB};
  EXPECT_LE(plan.page_count(), plan_shares(part, options, alike).page_count());
  EXPECT_EQ(plan.whole_cache().bytes_per_page_id(), 3 * plan.cache.bytes_per_page_id());
}

TEST(PlanShares, TheRankWithoutMemoryIsNamed) {
  const ModelDescription part = part_of_rank(share_model(4), 2, 64 * kShareMiB);
  const std::vector<uint64_t> budgets = {0, 16 * kShareMiB};
  try {
    plan_shares(part, share_options(512 * kShareMiB), budgets);
    FAIL() << "no error";
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1: "));
  }
}

// Parts and gathered rows are in memory at the same time.
TEST(PlanShares, StepsAreLargerThanTheSameStepsOfTheWhole) {
  const ModelDescription model = share_model(4);
  const ModelDescription part = part_of_rank(model, 2, 0);
  EXPECT_GT(step_bytes(part, 64, 8), step_bytes(model, 64, 8));
}

}  // namespace
}  // namespace octavo
