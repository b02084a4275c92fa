#include "kernels/metal/attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"

namespace octavo::metal {
namespace {

struct Batch {
  std::vector<int32_t> cu = {0};
  std::vector<int32_t> context = {};
  AttentionBatch of = {};

  Batch(int32_t group, int32_t kv_heads, int32_t v_dim, int32_t most_tiles) {
    of.group = group;
    of.kv_heads = kv_heads;
    of.v_dim = v_dim;
    of.most_tiles = most_tiles;
  }
  void add(int32_t cached, int32_t rows) {
    cu.push_back(cu.back() + rows);
    context.push_back(cached + rows);
  }
  AttentionPlan plan() {
    of.cu_seqlens_q = cu;
    of.context_lens = context;
    return plan_attention(of);
  }
};

// Every column goes through every split it looks at exactly once, and cut items are folded whole.
void expect_complete(Batch& batch, const AttentionPlan& plan) {
  using Column = std::pair<int32_t, int32_t>;  // sequence, column
  std::map<Column, std::map<int32_t, int>> seen;
  for (const AttentionWave& wave : plan.waves) {
    EXPECT_LE(wave.tiles, batch.of.most_tiles);
    for (const AttentionItem& item : wave.items) {
      EXPECT_LE(item.columns, wave.tiles * kTileColumns);
      EXPECT_TRUE(item.partial < 0 || item.split_end == item.split_begin + 1);
      for (int32_t c = item.column_begin; c < item.column_begin + item.columns; ++c)
        for (int32_t s = item.split_begin; s < item.split_end; ++s) ++seen[{item.sequence, c}][s];
    }
  }
  for (size_t s = 0; s < batch.context.size(); ++s) {
    const int32_t rows = batch.cu[s + 1] - batch.cu[s];
    for (int32_t c = 0; c < rows * batch.of.group; ++c) {
      const int32_t position = batch.context[s] - rows + c / batch.of.group;
      const int32_t first =
          batch.of.window > 0 ? std::max(0, position - batch.of.window + 1) / kSplitKeys : 0;
      const auto& splits = seen[{static_cast<int32_t>(s), c}];
      for (int32_t split = first; split <= position / kSplitKeys; ++split)
        ASSERT_EQ(splits.count(split), 1u) << s << " " << c << " " << split;
      for (const auto& [split, times] : splits) ASSERT_EQ(times, 1);
    }
  }
}

TEST(AttentionPlan, EveryColumnMeetsEverySplitOnce) {
  for (const int32_t window : {0, 100, 1000}) {
    for (const int32_t group : {1, 3, 8, 20}) {
      Batch batch(group, 2, 64, 4);
      batch.of.window = window;
      batch.add(0, 1);
      batch.add(700, 1);
      batch.add(127, 3);
      batch.add(0, 300);
      batch.add(5000, 40);
      batch.add(9, 0);
      expect_complete(batch, batch.plan());
    }
  }
}

TEST(AttentionPlan, FewRowsAreCutAndManyAreNot) {
  Batch few(4, 8, 128, 4);
  few.add(4000, 1);
  EXPECT_EQ(few.plan().merges.size(), 1u);
  Batch many(4, 8, 128, 4);
  for (int i = 0; i < 32; ++i) many.add(4000, 1);
  EXPECT_TRUE(many.plan().merges.empty());
  // One that is far longer than its neighbours.
  many.add(40000, 1);
  EXPECT_EQ(many.plan().merges.size(), 1u);
}

// Long contexts, with chunks of prompts and with many heads on one: what is kept stays bounded.
TEST(AttentionPlan, PartialsStayWithinTheirBudget) {
  struct Shape {
    int32_t group, kv_heads, v_dim, tiles;
  };
  for (const Shape& shape :
       {Shape{4, 8, 128, 4}, {128, 1, 512, 2}, {16, 1, 512, 2}, {1, 32, 128, 4}}) {
    for (const int32_t context : {5000, 32768, 131072, 1 << 20}) {
      for (const int32_t rows : {1, 8, 512, 2048}) {
        Batch batch(shape.group, shape.kv_heads, shape.v_dim, shape.tiles);
        batch.add(context, rows);
        batch.add(100, 1);
        const AttentionPlan plan = batch.plan();
        const int64_t bytes = partial_floats(plan, shape.v_dim) * shape.kv_heads * 4;
        EXPECT_LE(bytes, kMostPartialBytes) << context << " " << rows;
        if (rows >= 512) {
          EXPECT_LE(plan.merges.size(), 1u) << context;
        }
      }
    }
  }
}

TEST(AttentionPlan, ItemsAreAsWideAsTheirMemoryAllows) {
  EXPECT_EQ(widest_item(128, 2), 4);
  EXPECT_EQ(widest_item(128, 4), 2);
  EXPECT_EQ(widest_item(256, 2), 2);
  EXPECT_EQ(widest_item(576, 2), 2);
  EXPECT_EQ(widest_item(576, 4), 1);
  EXPECT_THROW(widest_item(4096, 4), SetupError);
}

}  // namespace
}  // namespace octavo::metal
