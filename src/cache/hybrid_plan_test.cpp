// Plans for models that mix attention with recurrent layers.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "cache/cache_plan.h"
#include "cache/hybrid_shapes.h"
#include "cache/prefix_cache.h"

namespace octavo {
namespace {

constexpr size_t kPage = 65536;  // one head's 128 x 128 state in float32

HybridShape small() { return hybrid_shapes().front(); }

size_t sequence_bytes(const CachePlan& plan, int tokens) {
  return static_cast<size_t>(plan.pages_for(tokens)) * plan.bytes_per_page_id();
}

// Every head and unit of every layer has its own bytes, within a page of the table.
void expect_no_overlap(const CachePlan& plan) {
  std::set<std::tuple<int, int, size_t>> taken;  // slot, column, first byte
  const auto take = [&](int slot, int column, size_t first, size_t bytes) {
    EXPECT_GE(column, 0);
    EXPECT_LT(column, plan.state->pages);
    EXPECT_LE(first + bytes, plan.page_bytes);
    EXPECT_TRUE(taken.emplace(slot, column, first).second);
  };
  for (int layer : plan.state->layers) {
    const LayerPlace place = plan.places[static_cast<size_t>(layer)];
    const StateGeometry g = plan.state->geometry(place.row);
    EXPECT_EQ(place.group, static_cast<int>(plan.groups.size()));
    for (int h = g.first_head; h < g.first_head + g.heads; ++h)
      take(place.slot, h / g.heads_per_page, widen(h % g.heads_per_page) * g.head_bytes(),
           g.head_bytes());
    for (int u = g.first_unit; u < g.first_unit + g.conv_units; ++u)
      take(place.slot, g.conv_column + u / g.units_per_page,
           widen(u % g.units_per_page) * g.unit_bytes(), g.unit_bytes());
  }
}

class HybridPlan : public testing::TestWithParam<HybridShape> {};

TEST_P(HybridPlan, AttentionKeepsASmallBlockWithLittlePadding) {
  const HybridShape& shape = GetParam();
  const CachePlan plan = plan_cache(shape.specs(), 16);
  EXPECT_EQ(plan.page_bytes, kPage);
  EXPECT_GE(plan.groups.front().block_tokens, 16);
  EXPECT_LE(plan.groups.front().block_tokens, 32);
  EXPECT_EQ(plan.slots, shape.layers / 4);
  EXPECT_EQ(plan.groups.size(), 1u);
  for (int tokens : {2048, 32768}) {
    const auto bare = static_cast<double>(shape.bare_bytes(tokens));
    EXPECT_LE(static_cast<double>(sequence_bytes(plan, tokens)), 1.02 * bare);
    EXPECT_LE(sequence_bytes(plan, tokens), shape.unified_bytes(tokens));
  }
  expect_no_overlap(plan);
}

INSTANTIATE_TEST_SUITE_P(Shapes, HybridPlan, testing::ValuesIn(hybrid_shapes()),
                         [](const auto& shape) {
                           std::string name = shape.param.name;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// 544 tokens for the 0.8B model and 528 for the 4B.
TEST(HybridPlanCase, UnificationWouldNeedLongBlocks) {
  EXPECT_EQ(hybrid_shapes()[0].unified_block(), 544);
  EXPECT_EQ(hybrid_shapes()[2].unified_block(), 528);
  EXPECT_EQ(hybrid_shapes()[4].unified_block(), 784);
}

TEST(HybridPlanCase, AModelWithoutStateHasNoStateGroup) {
  const CachePlan plan = plan_cache(std::vector<CacheSpec>(4, small().attention()), 16);
  EXPECT_FALSE(plan.state.has_value());
  EXPECT_EQ(plan.state_pages(), 0);
}

TEST(HybridPlanCase, TheStateIsCountedInFloat32ForEveryDtype) {
  HybridShape half = small();
  half.dtype = DType::kFloat16;
  HybridShape whole = small();
  whole.dtype = DType::kFloat32;
  EXPECT_EQ(half.state().head_bytes(), kPage);
  EXPECT_EQ(whole.state().head_bytes(), kPage);
  EXPECT_EQ(plan_cache(half.specs(), 16).groups[0].block_tokens, 32);
  EXPECT_EQ(plan_cache(whole.specs(), 16).groups[0].block_tokens, 16);
}

TEST(HybridPlanCase, ALongBlockPutsSeveralHeadsIntoAPage) {
  const CachePlan plan = plan_cache(small().specs(), 128);
  EXPECT_EQ(plan.page_bytes, 4 * kPage);
  EXPECT_EQ(plan.state->heads_per_page, 4);
  EXPECT_EQ(plan.groups[0].block_tokens, 128);
  expect_no_overlap(plan);
}

TEST(HybridPlanCase, AShortBlockIsRaisedToFitTheStateOfAHead) {
  EXPECT_EQ(plan_cache(small().specs(), 8).groups[0].block_tokens, 32);
}

TEST(HybridPlanCase, Int8PagesHoldMoreTokens) {
  std::vector<CacheSpec> specs = small().specs();
  for (auto& spec : specs) {
    if (auto* softmax = std::get_if<SoftmaxSpec>(&spec)) softmax->format = KvFormat::kInt8;
  }
  const CachePlan plan = plan_cache(specs, 16);
  EXPECT_EQ(plan.page_bytes, kPage);
  EXPECT_EQ(plan.groups[0].block_tokens, 56);  // scales next to the values
}

TEST(HybridPlanCase, LayersThatDoNotDivideEvenly) {
  std::vector<CacheSpec> specs(7, small().state());
  specs.insert(specs.end(), 3, small().attention());
  const CachePlan plan = plan_cache(specs, 16);
  expect_no_overlap(plan);
  EXPECT_GE(plan.slots * plan.state->rows, 7);
}

TEST(HybridPlanCase, AWindowNextToAState) {
  std::vector<CacheSpec> specs = small().specs();
  SoftmaxSpec window = small().attention();
  window.window = 512;
  specs[3] = window;
  const CachePlan plan = plan_cache(specs, 16);
  EXPECT_EQ(plan.groups[static_cast<size_t>(plan.places[3].group)].spec.window, 512);
  EXPECT_EQ(plan.groups[static_cast<size_t>(plan.places[7].group)].spec.window, 0);
  expect_no_overlap(plan);
}

TEST(HybridPlanCase, AConvolutionAlone) {  // LFM2-1.2B
  const StateSpec conv{.conv_rows = 2, .conv_channels = 2048, .conv_dtype = DType::kBFloat16};
  std::vector<CacheSpec> specs(10, conv);
  specs.insert(specs.end(), 6, SoftmaxSpec{.kv_heads = 8, .k_dim = 64, .v_dim = 64});
  const CachePlan plan = plan_cache(specs, 16);
  EXPECT_EQ(plan.groups[0].block_tokens, 16);
  EXPECT_EQ(plan.slots, 2);
  EXPECT_EQ(plan.state->pages, 2);  // 5 x 8 KiB in pages of 32 KiB
  expect_no_overlap(plan);
}

TEST(HybridPlanCase, TheWidestHeads) {
  HybridShape shape = small();
  shape.state_dim = 256;
  const CachePlan plan = plan_cache(shape.specs(), 16);
  EXPECT_EQ(plan.page_bytes, 4 * kPage);
  EXPECT_EQ(plan.groups[0].block_tokens, 128);
  expect_no_overlap(plan);
}

TEST(HybridPlanCase, ALayerThatSharesACacheHasTheSamePlace) {
  std::vector<CacheSpec> specs(4, small().attention());
  specs[3] = SharedSpec{1};
  const CachePlan plan = plan_cache(specs, 16);
  EXPECT_EQ(plan.slots, 3);
  EXPECT_EQ(plan.places[3].slot, plan.places[1].slot);
  EXPECT_EQ(plan.places[3].group, plan.places[1].group);
}

// At least as long as a sequence whose pages cost as much as its state.
TEST(HybridPlanCase, SnapshotsCostNoMoreThanTheTokensBetweenThem) {
  const CachePlan plan = plan_cache(small().specs(), 16);
  PagePool pool(100);
  EXPECT_EQ(PrefixCache(plan, pool).snapshot_tokens(), 2048);
}

TEST(HybridPlanCase, ASequenceCanHoldThreeCopiesOfItsState) {
  const CachePlan plan = plan_cache(small().specs(), 16);
  EXPECT_EQ(plan.pages_held(2048, 512) - plan.pages_for(2048), 2 * plan.state_pages());
}

// One draft fits into the copies that a sequence holds anyway.
TEST(HybridPlanCase, CountsTheStatesOfDrafts) {
  CachePlan plan = plan_cache(small().specs(), 16);
  const int without = plan.pages_held(2048, 512);
  plan.state_drafts = 1;
  EXPECT_EQ(plan.pages_held(2048, 512), without);
  plan.state_drafts = 5;
  EXPECT_EQ(plan.pages_held(2048, 512), without + 4 * plan.state_pages());
}

}  // namespace
}  // namespace octavo
