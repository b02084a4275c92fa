#include "vision/resize.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::Each;
using testing::ElementsAre;

Image grey(int width, int height, std::vector<int> values) {
  Image image{.width = width, .height = height, .rgb = {}};
  for (const int value : values) image.rgb.insert(image.rgb.end(), 3, static_cast<uint8_t>(value));
  return image;
}

std::vector<int> red(const Image& image) {
  std::vector<int> values;
  for (size_t i = 0; i < image.rgb.size(); i += 3) values.push_back(image.rgb[i]);
  return values;
}

// The expected numbers are Pillow 13's; tests/e2e/test_vision_pixels.py compares whole images.

TEST(Resize, ShrinksBicubically) {
  const Image image = grey(7, 1, {0, 255, 10, 200, 90, 30, 250});
  EXPECT_THAT(red(resize(image, 3, 1, ResizeFilter::kBicubic)), ElementsAre(111, 117, 127));
  EXPECT_THAT(red(resize(image, 3, 1, ResizeFilter::kBilinear)), ElementsAre(111, 123, 121));
}

TEST(Resize, GrowsAndClampsToBytes) {
  const Image image = grey(2, 1, {0, 255});
  EXPECT_THAT(red(resize(image, 6, 1, ResizeFilter::kBicubic)),
              ElementsAre(0, 0, 76, 179, 255, 255));
  EXPECT_THAT(red(resize(image, 6, 1, ResizeFilter::kBilinear)),
              ElementsAre(0, 0, 85, 170, 255, 255));
}

TEST(Resize, TakesTheHeightFirstIfItLosesFarMoreRows) {
  std::vector<int> values;
  for (int i = 0; i < 5 * 11; ++i) values.push_back(i * 89 % 256);
  const Image image = grey(5, 11, values);
  EXPECT_THAT(red(resize(image, 4, 2, ResizeFilter::kBicubic)),
              ElementsAre(121, 116, 140, 123, 145, 130, 139, 121));
  EXPECT_THAT(red(resize(image, 2, 9, ResizeFilter::kBicubic)),
              ElementsAre(80, 88, 118, 127, 135, 142, 154, 163, 104, 114, 122, 129, 130, 145, 179,
                          121, 129, 114));
}

TEST(Resize, KeepsFlatColors) {
  const Image image = grey(31, 17, std::vector<int>(31 * 17, 77));
  for (const auto& [width, height] : {std::pair{1, 1}, {100, 3}, {30, 40}, {31, 17}}) {
    EXPECT_THAT(red(resize(image, width, height, ResizeFilter::kBicubic)), Each(77));
  }
}

TEST(Resize, CopiesAnImageOfTheSameSize) {
  const Image image = grey(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(resize(image, 2, 2, ResizeFilter::kBicubic).rgb, image.rgb);
}

}  // namespace
}  // namespace octavo
