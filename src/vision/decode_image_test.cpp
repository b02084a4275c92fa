#include "vision/decode_image.h"

#include <gmock/gmock.h>

#include <string>

#include "vision/testing/sample_bytes.h"

namespace octavo {
namespace {

using testing::HasSubstr;

std::string refusal(std::span<const std::byte> file, const ImageLimits& limits = {}) {
  try {
    decode_image(file, limits);
  } catch (const ImageError& error) {
    return error.what();
  }
  return "";
}

TEST(DecodeImage, DecodesEverySample) {
  for (const ImageSample& sample : kImageSamples) {
    const Image image = decode_image(sample_bytes(sample));
    EXPECT_EQ(image.rgb.size(), size_t{3} * image.width * image.height) << sample.name;
    const bool is_small = sample.name == "png_interlaced16";
    EXPECT_EQ(image.width * image.height, is_small ? 11 * 9 : 21 * 18) << sample.name;
  }
}

TEST(DecodeImage, AppliesTheOrientation) {
  const Image turned = decode_image(sample_bytes("png_rgb_exif"));
  EXPECT_EQ(turned.width, 18);
  EXPECT_EQ(turned.height, 21);
}

TEST(DecodeImage, RefusesSizesAboveTheLimits) {
  const auto file = sample_bytes("webp_lossy");  // 21 x 18
  EXPECT_EQ(refusal(file, {.pixels = 21 * 18, .side = 21}), "");
  EXPECT_THAT(refusal(file, {.pixels = 1000, .side = 20}), HasSubstr("a side may have at most 20"));
  EXPECT_THAT(refusal(file, {.pixels = 377, .side = 21}), HasSubstr("may have at most 377"));
}

TEST(DecodeImage, RefusesDamagedFiles) {
  for (const ImageSample& sample : kImageSamples) {
    auto file = sample_bytes(sample);
    file.resize(file.size() * 2 / 3);
    EXPECT_NE(refusal(file), "") << sample.name;
  }
  EXPECT_THAT(refusal({}), HasSubstr("not a PNG, JPEG, WebP or GIF"));
}

}  // namespace
}  // namespace octavo
