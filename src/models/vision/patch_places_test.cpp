#include "models/vision/patch_places.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/vision/patch_chunks.h"

namespace octavo {
namespace {

TEST(PatchPlaces, BlocksFollowOneAnother) {
  const std::vector<PatchPlace> places = patch_places(2, 4, 2);
  const std::vector<std::pair<int, int>> expected = {{0, 0}, {0, 1}, {1, 0}, {1, 1},
                                                     {0, 2}, {0, 3}, {1, 2}, {1, 3}};
  ASSERT_EQ(places.size(), expected.size());
  for (size_t i = 0; i < places.size(); ++i)
    EXPECT_EQ(std::pair(places[i].row, places[i].column), expected[i]) << i;
}

TEST(PatchPlaces, TheTableOfQwenIsStretchedOverTheImage) {
  VisionPlan plan;
  plan.shape.positions = 9;
  const std::vector<PatchPlace> places = patch_places(2, 6, 2);
  const PositionEntries entries = position_entries(plan, places, 2, 6);
  ASSERT_EQ(entries.indices.size(), 4);
  for (size_t p = 0; p < places.size(); ++p) {
    float sum = 0;
    float row = 0;
    float column = 0;
    for (size_t i = 0; i < 4; ++i) {
      const int index = entries.indices[i][p];
      const float weight = entries.weights[i][p];
      ASSERT_TRUE(index >= 0 && index < 9);
      sum += weight;
      row += weight * static_cast<float>(index / 3);
      column += weight * static_cast<float>(index % 3);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(row, static_cast<float>(places[p].row) * 2, 1e-6);
    EXPECT_NEAR(column, static_cast<float>(places[p].column) * 2 / 5, 1e-6);
  }
}

TEST(PatchPlaces, OtherTablesHaveOneEntryPerPlace) {
  VisionPlan plan;
  plan.processor.family = ImageFamily::kGemma4;
  plan.shape.positions = 100;
  const std::vector<PatchPlace> places = patch_places(3, 6, 3);
  const PositionEntries two = position_entries(plan, places, 3, 6);
  ASSERT_EQ(two.indices.size(), 2);
  EXPECT_TRUE(two.weights.empty());
  EXPECT_EQ(two.indices[0][9], 3);     // the column of the second block's first patch
  EXPECT_EQ(two.indices[1][17], 102);  // its last row
  plan.processor.family = ImageFamily::kGemma3;
  EXPECT_EQ(position_entries(plan, places, 3, 6).indices[0][17], 17);
  plan.shape.positions = 0;
  EXPECT_TRUE(position_entries(plan, places, 3, 6).indices.empty());
}

TEST(PatchChunks, HaveWholeBlocksAndAllPatches) {
  for (const int rows_at_once : {1, 4, 9, 10, 100, 1 << 30}) {
    const PatchChunks chunks(9 * 14, 3, rows_at_once);
    int patches = 0;
    for (int i = 0; i < chunks.count(); ++i) {
      EXPECT_EQ(chunks.first(i), patches);
      EXPECT_EQ(chunks.rows(i) % 9, 0);
      patches += chunks.rows(i);
    }
    EXPECT_EQ(patches, 9 * 14) << rows_at_once;
  }
}

}  // namespace
}  // namespace octavo
