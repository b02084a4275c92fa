#include "kernels/metal/attention_grid.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"

namespace octavo::metal {
namespace {

struct Batch {
  std::vector<int32_t> cu = {0};
  std::vector<int32_t> context = {};
  std::vector<int32_t> last = {};  // of each row, or empty
  AttentionBatch of = {};

  Batch(int32_t group, int32_t kv_heads, int32_t v_dim, int32_t most_tiles) {
    of.group = group;
    of.kv_heads = kv_heads;
    of.v_dim = v_dim;
    of.most_tiles = most_tiles;
    of.gpu_cores = 40;
  }
  void add(int32_t cached, int32_t rows) {
    cu.push_back(cu.back() + rows);
    context.push_back(cached + rows);
  }
  AttentionGrid grid() {
    of.cu_seqlens_q = cu;
    of.context_lens = context;
    of.last_visible = last;
    return plan_attention_grid(of);
  }
};

// Every column visits each of its splits exactly once, and all partials of split items are merged.
void expect_complete(Batch& batch, const AttentionGrid& grid) {
  using Column = std::pair<int32_t, int32_t>;  // sequence, column
  std::map<Column, std::map<int32_t, int>> seen;
  for (const AttentionWave& wave : grid.waves) {
    const bool is_decode = wave.kernel == AttentionKernel::kDecode;
    EXPECT_LE(wave.width, is_decode ? 16 : batch.of.most_tiles * kTileColumns);
    for (const GridItem& item : wave.items) {
      EXPECT_LE(item.columns, wave.width);
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
      const auto row = static_cast<size_t>(batch.cu[s] + c / batch.of.group);
      const int32_t last = batch.last.empty() ? position : batch.last[row];
      for (int32_t split = first; split <= last / kSplitKeys; ++split)
        ASSERT_EQ(splits.count(split), 1u) << s << " " << c << " " << split;
      for (const auto& [split, times] : splits) ASSERT_EQ(times, 1);
    }
  }
}

TEST(AttentionGrid, ItemsReachTheLastVisibleKeyOfAnyOfTheirRows) {
  for (const int32_t group : {1, 3, 8, 20}) {
    Batch batch(group, 2, 64, 4);
    batch.of.most_vector = 16;
    batch.add(100, 300);
    batch.add(700, 1);
    batch.add(0, 900);
    for (int32_t row = 0; row < 300; ++row)
      batch.last.push_back(row < 40 ? 139 : row < 44 ? 390 : 100 + row);
    batch.last.push_back(700);
    batch.last.resize(1201, 899);
    expect_complete(batch, batch.grid());
  }
}

TEST(AttentionGrid, EveryColumnVisitsEverySplitOnce) {
  for (const int32_t window : {0, 100, 1000}) {
    for (const int32_t group : {1, 3, 8, 20}) {
      Batch batch(group, 2, 64, 4);
      batch.of.window = window;
      batch.of.most_vector = window == 100 ? 0 : 16;
      batch.add(0, 1);
      batch.add(700, 1);
      batch.add(127, 3);
      batch.add(0, 300);
      batch.add(5000, 40);
      batch.add(9, 0);
      expect_complete(batch, batch.grid());
    }
  }
}

TEST(AttentionGrid, FewColumnsGoToTheDecodeKernel) {
  Batch batch(4, 8, 128, 4);
  batch.of.most_vector = 16;
  batch.add(500, 1);
  batch.add(700, 3);
  batch.add(600, 1);
  batch.add(0, 40);
  const AttentionGrid grid = batch.grid();
  ASSERT_EQ(grid.waves.size(), 3u);
  const auto expect_wave = [](const AttentionWave& wave, AttentionKernel kernel, int32_t width) {
    EXPECT_EQ(wave.kernel, kernel);
    EXPECT_EQ(wave.width, width);
  };
  expect_wave(grid.waves[0], AttentionKernel::kDecode, 4);
  expect_wave(grid.waves[1], AttentionKernel::kDecode, 16);
  expect_wave(grid.waves[2], AttentionKernel::kMatrix, 32);
}

TEST(AttentionGrid, FewRowsAreCutAndManyAreNot) {
  Batch few(4, 8, 128, 4);
  few.add(4000, 1);
  EXPECT_EQ(few.grid().merges.size(), 1u);
  Batch many(4, 8, 128, 4);
  for (int i = 0; i < 32; ++i) many.add(4000, 1);
  EXPECT_TRUE(many.grid().merges.empty());
  many.of.gpu_cores = 80;
  EXPECT_EQ(many.grid().merges.size(), 32u);
  many.of.gpu_cores = 40;
  // One sequence that is far longer than the others.
  many.add(40000, 1);
  EXPECT_EQ(many.grid().merges.size(), 1u);
}

// Long contexts with prompt chunks and with many query heads per KV head: partials stay bounded.
TEST(AttentionGrid, PartialsStayWithinTheirBudget) {
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
        const AttentionGrid grid = batch.grid();
        const int64_t bytes = partial_floats(grid, shape.v_dim) * shape.kv_heads * 4;
        EXPECT_LE(bytes, kMostPartialBytes) << context << " " << rows;
        if (rows >= 512) {
          EXPECT_LE(grid.merges.size(), 1u) << context;
        }
      }
    }
  }
}

TEST(AttentionGrid, ItemsAreAsWideAsTheirMemoryAllows) {
  EXPECT_EQ(widest_item(128, 128, 2), 4);
  EXPECT_EQ(widest_item(128, 128, 4), 2);
  EXPECT_EQ(widest_item(64, 256, 2), 2);  // registers
  EXPECT_EQ(widest_item(256, 256, 2), 2);
  EXPECT_EQ(widest_item(576, 512, 2), 2);
  EXPECT_EQ(widest_item(576, 512, 4), 1);
  EXPECT_THROW(widest_item(4096, 4096, 4), SetupError);
  EXPECT_EQ(widest_decode(64, 64), 16);
  EXPECT_EQ(widest_decode(256, 256), 16);
  EXPECT_EQ(widest_decode(512, 512), 8);
  EXPECT_EQ(widest_decode(576, 512), 8);
  EXPECT_EQ(widest_decode(1024, 1024), 0);
}

}  // namespace
}  // namespace octavo::metal
