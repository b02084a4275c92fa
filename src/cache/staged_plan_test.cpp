// Plans for models whose layers are divided into stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "cache/cache_plan.h"
#include "cache/hybrid_shapes.h"

namespace octavo {
namespace {

SoftmaxSpec softmax(int window) {
  return {.kv_heads = 2, .k_dim = 64, .v_dim = 64, .window = window};
}

StateSpec recurrent() {
  return {.heads = 4, .k_dim = 64, .v_dim = 64, .conv_rows = 3, .conv_channels = 256};
}

// Layers of up to five kinds; some share the cache of an earlier layer, or keep nothing.
std::vector<CacheSpec> random_layers(std::mt19937& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int count = draw(2, 40);
  const int kinds = draw(1, 5);
  std::vector<CacheSpec> layers = {softmax(0)};
  while (static_cast<int>(layers.size()) < count) {
    switch (draw(1, kinds)) {
      case 1:
        layers.emplace_back(softmax(0));
        break;
      case 2:
        layers.emplace_back(softmax(512));
        break;
      case 3:
        layers.emplace_back(recurrent());
        break;
      case 4:
        layers.emplace_back(NoCacheSpec{});
        break;
      default:
        const int source = draw(0, static_cast<int>(layers.size()) - 1);
        if (std::holds_alternative<SoftmaxSpec>(layers[static_cast<size_t>(source)]))
          layers.emplace_back(SharedSpec{source});
    }
  }
  return layers;
}

// Up to four stages, cut where that is allowed.
std::vector<int> random_cuts(std::mt19937& random, const std::vector<CacheSpec>& layers) {
  std::set<int> cuts;
  for (int i = 0; i < 3; ++i) {
    const int cut =
        std::uniform_int_distribution<int>(1, static_cast<int>(layers.size()) - 1)(random);
    if (may_cut(layers, cut)) cuts.insert(cut);
  }
  return {cuts.begin(), cuts.end()};
}

bool keeps_something(const CacheSpec& spec) {
  return std::holds_alternative<SoftmaxSpec>(spec) || std::holds_alternative<StateSpec>(spec);
}

void expect_consecutive_stages(const CachePlan& plan, size_t stages) {
  ASSERT_EQ(plan.stages.size(), stages);
  int next = 0;
  for (const SlotRange& range : plan.stages) {
    EXPECT_EQ(range.first, next);
    next = range.end();
  }
  EXPECT_EQ(next, plan.slots);
}

TEST(StagedPlan, EveryLayerHasItsOwnPlaceInItsStage) {
  std::mt19937 random(1);
  size_t divided = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto layers = random_layers(random);
    const auto cuts = random_cuts(random, layers);
    const CachePlan plan = plan_cache(layers, 16, cuts);
    expect_consecutive_stages(plan, cuts.size() + 1);
    divided += cuts.empty() ? 0 : 1;
    std::set<std::tuple<int, int, int>> taken;  // group, slot, row
    for (size_t i = 0; i < layers.size(); ++i) {
      if (std::holds_alternative<NoCacheSpec>(layers[i])) continue;
      const LayerPlace place = plan.places[i];
      const auto stage =
          static_cast<size_t>(std::ranges::upper_bound(cuts, static_cast<int>(i)) - cuts.begin());
      ASSERT_GE(place.slot, plan.stages[stage].first);
      ASSERT_LT(place.slot, plan.stages[stage].end());
      if (!keeps_something(layers[i])) continue;
      EXPECT_TRUE(taken.emplace(place.group, place.slot, place.row).second);
      const auto group = static_cast<size_t>(place.group);
      if (const auto* spec = std::get_if<SoftmaxSpec>(&layers[i])) {
        ASSERT_LT(group, plan.groups.size());
        EXPECT_EQ(plan.groups[group].spec, *spec);
        EXPECT_EQ(plan.groups[group].layers[static_cast<size_t>(place.slot)], static_cast<int>(i));
      } else {
        EXPECT_EQ(group, plan.groups.size());
        EXPECT_LT(place.row, plan.state->rows);
      }
    }
  }
  EXPECT_GT(divided, 500u);
}

TEST(StagedPlan, EqualStagesWasteNoMoreThanOne) {
  std::vector<CacheSpec> layers;
  for (int i = 0; i < 24; ++i) layers.emplace_back(softmax(i % 4 == 3 ? 0 : 512));
  const CachePlan whole = plan_cache(layers, 16);
  const CachePlan plan = plan_cache(layers, 16, std::vector<int>{12});
  EXPECT_EQ(plan.groups.size() * static_cast<size_t>(plan.slots), layers.size());
  EXPECT_EQ(plan.stages[0].count, plan.stages[1].count);
  EXPECT_DOUBLE_EQ(plan.bytes_per_token(), whole.bytes_per_token());
  EXPECT_EQ(plan.of_stage(1).bytes_per_page_id() * 2, plan.bytes_per_page_id());
}

// Gemma 3 1B in two parts: of 26 layers, every sixth is full.
TEST(StagedPlan, UnevenKindsWasteLittle) {
  std::vector<CacheSpec> layers;
  for (int i = 0; i < 26; ++i) layers.emplace_back(softmax(i % 6 == 5 ? 0 : 512));
  const CachePlan plan = plan_cache(layers, 16, std::vector<int>{13});
  const auto places = static_cast<int>(plan.groups.size()) * plan.slots;
  EXPECT_LE(places, 28);
}

TEST(StagedPlan, AHybridModelInThreeStages) {
  const HybridShape shape = hybrid_shapes()[2];  // 32 layers
  const auto specs = shape.specs();
  const CachePlan whole = plan_cache(specs, 16);
  const CachePlan plan = plan_cache(specs, 16, std::vector<int>{12, 20});
  EXPECT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.slots, 8);
  EXPECT_EQ(plan.state_pages(), whole.state_pages());
}

TEST(StagedPlan, AStageWithoutACacheHasNoSlots) {
  const std::vector<CacheSpec> layers = {softmax(0), NoCacheSpec{}, softmax(0)};
  const CachePlan plan = plan_cache(layers, 16, std::vector<int>{1, 2});
  EXPECT_EQ(plan.stages[1].count, 0);
  EXPECT_EQ(plan.of_stage(1).bytes_per_page_id(), 0u);
  EXPECT_EQ(plan.slots, 2);
}

TEST(StagedPlan, ALayerStaysWithTheOneWhoseCacheItReads) {
  const std::vector<CacheSpec> layers = {softmax(0), softmax(0), softmax(0), SharedSpec{1},
                                         softmax(0)};
  EXPECT_TRUE(may_cut(layers, 1));
  EXPECT_FALSE(may_cut(layers, 2));
  EXPECT_FALSE(may_cut(layers, 3));
  EXPECT_TRUE(may_cut(layers, 4));
  EXPECT_FALSE(may_cut(layers, 0));
  EXPECT_FALSE(may_cut(layers, 5));
}

}  // namespace
}  // namespace octavo
