#include "vision/fit_image.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace octavo {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using Sides = std::pair<int, int>;

constexpr int kManyTokens = 1 << 20;

ImageProcessor processor_of(const char* family) {
  return read_image_processor({{"model_type", family}}, nullptr);
}

Sides fitted(const char* family, int width, int height, int max_tokens = kManyTokens) {
  const ImageSize size = fit_image(processor_of(family), width, height, max_tokens);
  return {size.width, size.height};
}

// The sizes are those of the families' processors in mlx-vlm.

TEST(FitImage, RoundsQwensSidesToTheNearestToken) {
  EXPECT_EQ(fitted("qwen3_5", 1000, 700), Sides(992, 704));
  EXPECT_EQ(fitted("qwen3_5", 1008, 1040), Sides(1024, 1024));  // 31.5 and 32.5: to the even number
  EXPECT_EQ(fitted("qwen3_5", 1, 1), Sides(256, 256));
  EXPECT_EQ(fitted("qwen3_5", 8000, 8000), Sides(4096, 4096));
  const ImageSize size = fit_image(processor_of("qwen3_5"), 1000, 700, kManyTokens);
  EXPECT_EQ(size.grid_w, 62);
  EXPECT_EQ(size.grid_h, 44);
  EXPECT_EQ(size.tokens, 31 * 22);
}

TEST(FitImage, FillsGemma4sBudget) {
  EXPECT_EQ(fitted("gemma4", 1000, 1000), Sides(768, 768));
  EXPECT_EQ(fitted("gemma4", 1, 1), Sides(768, 768));
  EXPECT_EQ(fitted("gemma4", 16384, 1), Sides(280 * 48, 48));
  EXPECT_EQ(fitted("gemma4", 1000, 1000, 279), Sides(528, 528));  // the next budget is 140
  EXPECT_EQ(fit_image(processor_of("gemma4"), 1000, 1000, kManyTokens).tokens, 256);
}

TEST(FitImage, HasOneSizeForGemma3) {
  EXPECT_EQ(fitted("gemma3", 10, 2000), Sides(896, 896));
  EXPECT_EQ(fit_image(processor_of("gemma3"), 10, 2000, 256).tokens, 256);
}

TEST(FitImage, PadsPixtralsSides) {
  EXPECT_EQ(fitted("mistral3", 100, 29), Sides(112, 56));
  EXPECT_EQ(fitted("mistral3", 3080, 1540), Sides(1540, 784));
  EXPECT_EQ(fitted("mistral3", 5000, 1), Sides(1540, 28));
}

TEST(FitImage, NeverHasMoreTokensThanAllowed) {
  for (const char* family : {"qwen3_5", "gemma4", "mistral3"}) {
    for (const int max_tokens : {70, 77, 256, 1000, 4096}) {
      for (const Sides& sides :
           {Sides(1, 1), {100, 19'000}, {4000, 4000}, {16'000, 100}, {333, 444}}) {
        const ImageSize size =
            fit_image(processor_of(family), sides.first, sides.second, max_tokens);
        EXPECT_GE(size.tokens, 1);
        EXPECT_LE(size.tokens, max_tokens) << family << " " << sides.first << " x " << sides.second;
        EXPECT_EQ(size.grid_w * processor_of(family).patch, size.width);
      }
    }
  }
  EXPECT_EQ(fit_image(processor_of("qwen3_5"), 100, 19'999, 1).tokens, 1);
  EXPECT_EQ(fit_image(processor_of("mistral3"), 16'000, 100, 1).tokens, 1);
}

std::string refusal(const char* family, int width, int height, int max_tokens) {
  try {
    fit_image(processor_of(family), width, height, max_tokens);
  } catch (const ImageError& error) {
    return error.what();
  }
  return "";
}

TEST(FitImage, RefusesShapesThatQwenRefuses) {
  EXPECT_EQ(refusal("qwen3_5", 200, 1, kManyTokens), "");
  EXPECT_THAT(refusal("qwen3_5", 201, 1, kManyTokens), HasSubstr("at most 200 times"));
}

TEST(FitImage, RefusesTooFewTokens) {
  EXPECT_THAT(refusal("gemma4", 10, 10, 69), HasSubstr("more than 69 tokens"));
  EXPECT_THAT(refusal("gemma3", 10, 10, 255), HasSubstr("more than 255 tokens"));
  EXPECT_THAT(refusal("mistral3", 10, 10, 0), HasSubstr("more than 0 tokens"));
}

}  // namespace
}  // namespace octavo
