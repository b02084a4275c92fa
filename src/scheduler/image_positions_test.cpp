#include "scheduler/image_positions.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

RopePosition same(int position) { return {position, position, position}; }

TEST(RopePosition, TextWithoutImagesCountsOn) { EXPECT_EQ(rope_position({}, 7), same(7)); }

TEST(RopePosition, AnImageHasOneTimeAndItsGrid) {
  const std::vector<PromptImage> images = {{.offset = 2, .grid_h = 2, .grid_w = 3}};
  EXPECT_EQ(rope_position(images, 1), same(1));
  EXPECT_EQ(rope_position(images, 2), (RopePosition{2, 2, 2}));
  EXPECT_EQ(rope_position(images, 4), (RopePosition{2, 2, 4}));
  EXPECT_EQ(rope_position(images, 5), (RopePosition{2, 3, 2}));
  EXPECT_EQ(rope_position(images, 7), (RopePosition{2, 3, 4}));
}

TEST(RopePosition, TextAfterAnImageContinuesPastItsLargerSide) {
  const std::vector<PromptImage> images = {{.offset = 2, .grid_h = 2, .grid_w = 3},
                                           {.offset = 10, .grid_h = 4, .grid_w = 1}};
  EXPECT_EQ(rope_position(images, 8), same(5));  // 2 + 3
  EXPECT_EQ(rope_position(images, 9), same(6));
  EXPECT_EQ(rope_position(images, 10), same(7));
  EXPECT_EQ(rope_position(images, 13), (RopePosition{7, 10, 7}));
  EXPECT_EQ(rope_position(images, 14), same(11));
  EXPECT_EQ(rope_position(images, 1014), same(1011));
}

}  // namespace
}  // namespace octavo
