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

}  // namespace
}  // namespace octavo::metal
