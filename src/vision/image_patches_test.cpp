#include "vision/image_patches.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <numeric>

namespace octavo {
namespace {

using testing::ElementsAreArray;

// The byte of pixel (x, y) and channel c is its index, and a level is the byte itself.
Image counting(int width, int height) {
  Image image{.width = width, .height = height, .rgb = {}};
  image.rgb.resize(static_cast<size_t>(3) * width * height);
  std::iota(image.rgb.begin(), image.rgb.end(), uint8_t{0});
  return image;
}

ImageProcessor identity(ImageFamily family, int patch, int merge, int frames = 1) {
  ImageProcessor processor{.family = family, .patch = patch, .merge = merge, .frames = frames};
  for (auto& levels : processor.levels) std::iota(levels.begin(), levels.end(), 0.0f);
  return processor;
}

TEST(MakePatches, PutsQwensPatchesInBlocksAndDoublesFrames) {
  const ImagePatches patches = make_patches(identity(ImageFamily::kQwen, 1, 2, 2), counting(4, 2));
  EXPECT_EQ(patches.grid_h, 2);
  EXPECT_EQ(patches.grid_w, 4);
  EXPECT_EQ(patches.tokens, 2);
  std::vector<float> expected;
  for (const int pixel : {0, 1, 4, 5, 2, 3, 6, 7}) {
    for (int channel = 0; channel < 3; ++channel) {
      expected.insert(expected.end(), 2, static_cast<float>(3 * pixel + channel));
    }
  }
  EXPECT_THAT(patches.values, ElementsAreArray(expected));
}

TEST(MakePatches, PutsGemma4sChannelsLast) {
  const ImagePatches patches = make_patches(identity(ImageFamily::kGemma4, 2, 1), counting(4, 2));
  EXPECT_EQ(patches.tokens, 2);
  EXPECT_THAT(patches.values, ElementsAreArray({0, 1, 2, 3, 4,  5,  12, 13, 14, 15, 16, 17,
                                                6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23}));
}

TEST(MakePatches, PutsPixtralsChannelsFirst) {
  const ImagePatches patches = make_patches(identity(ImageFamily::kPixtral, 2, 1), counting(4, 2));
  EXPECT_THAT(patches.values, ElementsAreArray({0, 3, 12, 15, 1, 4,  13, 16, 2, 5,  14, 17,
                                                6, 9, 18, 21, 7, 10, 19, 22, 8, 11, 20, 23}));
}

}  // namespace
}  // namespace octavo
