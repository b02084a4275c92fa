#include "api/images/image_reader.h"

#include <gmock/gmock.h>

#include "api/testing/image_model.h"
#include "api/testing/refusals.h"
#include "base/error.h"
#include "vision/image_pixels.h"
#include "vision/testing/sample_bytes.h"

namespace octavo::api {
namespace {

using testing::HasSubstr;

std::string file_of(std::string_view sample) {
  const std::vector<std::byte> bytes = sample_bytes(sample);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ImageSource source(std::string_view sample, bool low_detail = false) {
  return {.field = "image",
          .file = std::make_shared<const std::string>(file_of(sample)),
          .low_detail = low_detail};
}

ImageReader reader_of(ImageSettings settings, size_t memory_bytes = 1u << 20) {
  return ImageReader(std::move(settings), memory_bytes);
}

PromptImage read(const ImageReader& reader, const ImageSource& image) {
  return reader.read(std::span(&image, 1), {}).at(0);
}

const ImageSettings kQwenSettings = image_settings(ImageFamily::kQwen);

TEST(ImageReader, ResizesToWholeTokens) {
  const ImageReader reader = reader_of(kQwenSettings);
  const PromptImage image = read(reader, source("png_rgba"));  // 21 x 18
  EXPECT_EQ(image.grid_w, 5);
  EXPECT_EQ(image.grid_h, 4);
  EXPECT_EQ(image.pixels->resized.width, 20);
  EXPECT_EQ(image.pixels->resized.height, 16);
  EXPECT_EQ(image.pixels->grid_w, 10);
  EXPECT_EQ(image.pixels->grid_h, 8);
  EXPECT_FALSE(image.row_breaks);
  EXPECT_EQ(image.identifier.size(), 64u);
}

TEST(ImageReader, IdentifiersAreEqualForWhatTheModelSees) {
  const ImageReader reader = reader_of(kQwenSettings);
  const std::string identifier = read(reader, source("png_rgba")).identifier;
  EXPECT_EQ(read(reader, source("png_rgba")).identifier, identifier);
  EXPECT_NE(read(reader, source("png_rgb_exif")).identifier, identifier);
  ImageSettings brighter = kQwenSettings;
  brighter.processor.levels[0][255] = 1;
  EXPECT_NE(read(reader_of(brighter), source("png_rgba")).identifier, identifier);
  ImageSettings fewer = kQwenSettings;
  fewer.max_tokens = 4;
  EXPECT_NE(read(reader_of(fewer), source("png_rgba")).identifier, identifier);
}

TEST(ImageReader, KeepsToTheTokensOfAnImage) {
  ImageSettings settings = kQwenSettings;
  settings.max_tokens = 6;
  EXPECT_LE(read(reader_of(settings), source("png_rgba")).rows(), 6);
}

TEST(ImageReader, LowDetailHasFewTokens) {
  ImageSettings settings = kQwenSettings;
  settings.max_tokens = 4096;
  settings.processor.min_pixels = 1000 * 16;
  settings.processor.max_pixels = 4096 * 16;
  const ImageReader reader = reader_of(settings);
  EXPECT_GE(read(reader, source("png_rgba")).rows(), 1000);
  const int low = read(reader, source("png_rgba", true)).rows();
  EXPECT_LE(low, kLowDetailTokens);
  EXPECT_GT(low, 128);
}

TEST(ImageReader, BadFilesAreRefusedWithTheirField) {
  const ImageReader reader = reader_of(kQwenSettings);
  const ImageSource text{.field = "part", .file = std::make_shared<const std::string>("hello")};
  EXPECT_THAT(refusal_of([&] { read(reader, text); }),
              HasSubstr("400 part: the data is not a PNG, JPEG, WebP or GIF"));
  ImageSettings settings = kQwenSettings;
  settings.limits.pixels = 100;
  EXPECT_THAT(refusal_of([&] { read(reader_of(settings), source("png_rgba")); }),
              HasSubstr("may have at most 100"));
}

TEST(ImageReader, ARequestHasALimitOfImages) {
  const ImageReader reader = reader_of(kQwenSettings);
  const std::vector<ImageSource> five(5, source("png_rgba"));
  EXPECT_THAT(refusal_of([&] { reader.read(five, {}); }), HasSubstr("--limit-mm-per-prompt"));
  EXPECT_EQ(reader.read(std::span(five).first(4), {}).size(), 4u);
}

TEST(ImageReader, CountsTheMemoryOfOpenRequests) {
  constexpr size_t kBytes = 20 * 16 * 3;  // of a resized sample
  const ImageReader reader = reader_of(kQwenSettings, 2 * kBytes);
  const std::vector<ImageSource> images(3, source("png_rgba"));
  EXPECT_EQ(refused_field([&] { reader.read(images, {}); }), "400 image");
  EXPECT_EQ(reader.memory_taken(), 0u);
  auto open = reader.read(std::span(images).first(1), {});
  EXPECT_EQ(reader.memory_taken(), kBytes);
  EXPECT_EQ(refused_field([&] { reader.read(std::span(images).first(2), {}); }), "429 image");
  EXPECT_EQ(reader.memory_taken(), kBytes);
  open.clear();
  EXPECT_EQ(reader.memory_taken(), 0u);
}

class OneFile : public MediaFetcher {
 public:
  std::vector<std::byte> fetch(const std::string& url, const Preparation&) const override {
    if (url == "https://busy/a.png") throw RequestError(429, "", "too many");
    if (url != "https://host/a.png") throw RequestError(400, "", "no such host");
    return sample_bytes("png_rgba");
  }
};

TEST(ImageReader, FetchesUrls) {
  const ImageReader reader(kQwenSettings, 1u << 20, std::make_shared<const OneFile>());
  const ImageSource image{.field = "image", .url = "https://host/a.png"};
  EXPECT_EQ(read(reader, image).identifier, read(reader, source("png_rgba")).identifier);
  const ImageSource other{.field = "image", .url = "https://other/a.png"};
  EXPECT_EQ(refusal_of([&] { read(reader, other); }), "400 image: no such host");
  const ImageSource later{.field = "image", .url = "https://busy/a.png"};
  EXPECT_EQ(refused_field([&] { read(reader, later); }), "429 image");
  EXPECT_THAT(refusal_of([&] { read(reader_of(kQwenSettings), image); }),
              HasSubstr("--allowed-media-domains"));
}

TEST(ImageReader, CountsFetchedFilesWhileTheyAreRead) {
  const size_t file_bytes = sample_bytes("png_rgba").size();
  constexpr size_t kPixelBytes = 20 * 16 * 3;
  const ImageSource image{.field = "part", .url = "https://host/a.png"};
  const auto reader_with = [&](size_t memory_bytes) {
    return ImageReader(kQwenSettings, memory_bytes, std::make_shared<const OneFile>());
  };
  EXPECT_THAT(refusal_of([&] { read(reader_with(file_bytes - 1), image); }),
              HasSubstr("400 part: the images of the request take more than"));
  EXPECT_THAT(refusal_of([&] { read(reader_with(file_bytes + kPixelBytes - 1), image); }),
              HasSubstr("400 part: the images of the request take more than"));
  const ImageReader reader = reader_with(file_bytes + kPixelBytes);
  const PromptImage held = read(reader, image);
  EXPECT_EQ(reader.memory_taken(), kPixelBytes);
  EXPECT_THAT(refusal_of([&] { read(reader, image); }), HasSubstr("429 part"));
}

TEST(ImageReader, StopsWithTheRequest) {
  std::stop_source stop;
  stop.request_stop();
  const ImageSource image = source("png_rgba");
  EXPECT_EQ(refused_field([&] {
              reader_of(kQwenSettings).read(std::span(&image, 1), {.stop = stop.get_token()});
            }),
            "503 ");
}

}  // namespace
}  // namespace octavo::api
