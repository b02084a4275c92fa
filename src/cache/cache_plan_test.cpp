#include "cache/cache_plan.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

SoftmaxSpec full() { return {.kv_heads = 8, .k_dim = 128, .v_dim = 128}; }

SoftmaxSpec sliding() {
  SoftmaxSpec spec = full();
  spec.window = 512;
  return spec;
}

TEST(CachePlan, AUniformModelIsOneGroupWithABufferPerLayer) {
  const CachePlan plan = plan_cache(std::vector<CacheSpec>(28, full()), 16);
  EXPECT_EQ(plan.slots, 28);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.page_bytes, 16u * 8 * 128 * 2 * 2);
  EXPECT_EQ(plan.pages_for(17), 2);
  EXPECT_DOUBLE_EQ(plan.bytes_per_token(), 28.0 * 8 * 128 * 2 * 2);
  EXPECT_EQ(plan.places[27].slot, 27);
}

TEST(CachePlan, TwoKindsShareBuffersInEqualGroups) {
  std::vector<CacheSpec> layers;
  for (int i = 0; i < 24; ++i) layers.push_back(i % 4 == 3 ? full() : sliding());
  const CachePlan plan = plan_cache(layers, 16);
  EXPECT_EQ(plan.slots, 6);  // 18 and 6: four groups of six, nothing wasted
  EXPECT_EQ(plan.groups.size(), 4u);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerPlace place = plan.places[layer];
    EXPECT_EQ(plan.groups[static_cast<size_t>(place.group)].layers[static_cast<size_t>(place.slot)],
              static_cast<int>(layer));
    EXPECT_EQ(CacheSpec(plan.groups[static_cast<size_t>(place.group)].spec), layers[layer]);
  }
}

TEST(CachePlan, AnUnevenSplitWastesAsLittleAsPossible) {
  std::vector<CacheSpec> layers(22, sliding());  // Gemma 3 1B: 22 sliding, 4 full
  layers.insert(layers.end(), 4, full());
  const CachePlan plan = plan_cache(layers, 16);
  int waste = -26;
  for (const auto& group : plan.groups) {
    waste += plan.slots;
    EXPECT_LE(group.layers.size(), static_cast<size_t>(plan.slots));
  }
  EXPECT_EQ(waste, 0);
  EXPECT_EQ(plan.slots, 2);
}

// Gemma 4: full layers have heads twice as wide. Pages stay equal, so a sliding page holds more
// tokens.
TEST(CachePlan, ANarrowerKindFitsMoreTokensIntoAPage) {
  SoftmaxSpec wide{.kv_heads = 4, .k_dim = 512, .v_dim = 512};
  SoftmaxSpec narrow{.kv_heads = 4, .k_dim = 256, .v_dim = 256, .window = 512};
  const CachePlan plan = plan_cache(std::vector<CacheSpec>{wide, narrow}, 16);
  EXPECT_EQ(plan.groups[0].block_tokens, 16);
  EXPECT_EQ(plan.groups[1].block_tokens, 32);
  for (const auto& group : plan.groups) EXPECT_EQ(group.geometry().page_bytes(), plan.page_bytes);
  EXPECT_EQ(plan.pages_for(33), 3 + 2);
}

}  // namespace
}  // namespace octavo
