#include "kernels/metal/attention_plans.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/runtime/primitive.h"

namespace octavo::metal {
namespace {

TEST(AttentionPlans, LayersOfOneShapeShareAPlan) {
  const std::vector<int32_t> rows = {0, 1, 2}, contexts = {300, 5};
  AttentionBatch batch{.cu_seqlens_q = rows,
                       .context_lens = contexts,
                       .group = 2,
                       .kv_heads = 4,
                       .window = 0,
                       .most_tiles = 4,
                       .most_vector = 16,
                       .v_dim = 64,
                       .gpu_cores = 40};
  Encoder encoder(kernel_stream());
  AttentionPlans plans;
  const AttentionPlan& full = plans.find(batch, encoder);
  EXPECT_GT(full.merge_count, 0u);
  batch.window = 64;
  const AttentionPlan& windowed = plans.find(batch, encoder);
  EXPECT_NE(&full, &windowed);
  EXPECT_LT(windowed.partial_floats, full.partial_floats);
  EXPECT_EQ(&plans.find(batch, encoder), &windowed);
  batch.window = 0;
  EXPECT_EQ(&plans.find(batch, encoder), &full);
}

// As for a model in which only some layers have blocks that see their end.
TEST(AttentionPlans, LayersWithOtherLastVisibleKeysHaveTheirOwnPlan) {
  const std::vector<int32_t> rows = {0, 200}, contexts = {200}, ends(200, 199);
  std::vector<int32_t> own;
  for (int32_t i = 0; i < 200; ++i) own.push_back(i);
  AttentionBatch batch{.cu_seqlens_q = rows,
                       .context_lens = contexts,
                       .group = 1,
                       .kv_heads = 1,
                       .window = 0,
                       .most_tiles = 4,
                       .most_vector = 16,
                       .v_dim = 64,
                       .gpu_cores = 40};
  Encoder encoder(kernel_stream());
  AttentionPlans plans;
  const AttentionPlan& causal = plans.find(batch, encoder);
  batch.last_visible = ends;
  const AttentionPlan& whole = plans.find(batch, encoder);
  EXPECT_NE(&whole, &causal);
  EXPECT_GT(whole.waves[0].count, causal.waves[0].count);
  batch.last_visible = own;
  EXPECT_NE(&plans.find(batch, encoder), &whole);
  const std::vector<int32_t> again = ends;
  batch.last_visible = again;
  EXPECT_EQ(&plans.find(batch, encoder), &whole);
  batch.last_visible = {};
  EXPECT_EQ(&plans.find(batch, encoder), &causal);
}

}  // namespace
}  // namespace octavo::metal
