#include "vision/image_processor.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace octavo {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

Json config_of(const std::string& family) {
  Json config = {{"model_type", family}};
  if (family == "qwen3_5" || family == "qwen3_vl") {
    config["vision_config"] = {
        {"patch_size", 16}, {"spatial_merge_size", 2}, {"temporal_patch_size", 2}};
  } else if (family == "gemma4") {
    config["vision_config"] = {{"patch_size", 16}, {"pooling_kernel_size", 3}};
  } else if (family == "gemma3") {
    config["vision_config"] = {{"patch_size", 14}, {"image_size", 896}};
    config["mm_tokens_per_image"] = 256;
  } else {
    config["vision_config"] = {{"patch_size", 14}, {"image_size", 1540}};
    config["spatial_merge_size"] = 2;
  }
  return config;
}

std::string refusal(const Json& config, const Json& preprocessor) {
  try {
    read_image_processor(config, preprocessor);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(ImageProcessor, HasDefaultsForEveryFamily) {
  const ImageProcessor qwen = read_image_processor(config_of("qwen3_5"), nullptr);
  EXPECT_EQ(qwen.family, ImageFamily::kQwen);
  EXPECT_EQ(qwen.min_pixels, 65'536);
  EXPECT_EQ(qwen.max_pixels, 16'777'216);
  EXPECT_EQ(qwen.patch_numbers(), 1536);
  EXPECT_EQ(qwen.levels[0][0], -1.0f);
  EXPECT_EQ(qwen.levels[2][255], 1.0f);

  const ImageProcessor gemma4 = read_image_processor(config_of("gemma4"), nullptr);
  EXPECT_EQ(gemma4.max_tokens, 280);
  EXPECT_EQ(gemma4.token_side(), 48);
  EXPECT_EQ(gemma4.levels[1][0], -1.0f);

  const ImageProcessor gemma3 = read_image_processor(config_of("gemma3"), nullptr);
  EXPECT_EQ(gemma3.filter, ResizeFilter::kBilinear);
  EXPECT_EQ(gemma3.merge, 4);

  const ImageProcessor pixtral = read_image_processor(config_of("mistral3"), nullptr);
  EXPECT_EQ(pixtral.max_width, 1540);
  EXPECT_EQ(pixtral.token_side(), 28);
  EXPECT_FLOAT_EQ(pixtral.levels[0][0], -0.48145466f / 0.26862954f);
}

TEST(ImageProcessor, ReadsTheSizesOfAFile) {
  const auto sized = [](const Json& preprocessor) {
    return read_image_processor(config_of("qwen3_vl"), preprocessor);
  };
  EXPECT_EQ(sized({{"size", {{"longest_edge", 5'000'000}}}}).max_pixels, 5'000'000);
  EXPECT_EQ(sized({{"size", {{"longest_edge", 5'000'000}}}, {"max_pixels", 100'000}}).max_pixels,
            100'000);
  EXPECT_EQ(sized({{"min_pixels", 1024}}).min_pixels, 1024);
}

TEST(ImageProcessor, ReadsAProcessorConfig) {
  const Json inside = {{"image_processor", {{"max_soft_tokens", 560}}}};
  EXPECT_EQ(read_image_processor(config_of("gemma4"), inside).max_tokens, 560);
}

TEST(ImageProcessor, AppliesNoMeanWithoutNormalisation) {
  const ImageProcessor plain =
      read_image_processor(config_of("qwen3_5"), {{"do_normalize", false}});
  EXPECT_EQ(plain.levels[0][0], 0.0f);
  EXPECT_EQ(plain.levels[0][255], 1.0f);
}

TEST(ImageProcessor, RefusesOtherFamilies) {
  EXPECT_THAT(refusal({{"model_type", "llama"}}, nullptr), HasSubstr("model_type is \"llama\""));
  EXPECT_THAT(refusal(Json::array(), nullptr), HasSubstr("model_type is missing"));
  EXPECT_THAT(refusal({{"model_type", 7}}, nullptr), HasSubstr("model_type is 7"));
}

TEST(ImageProcessor, RefusesFilesThatDisagree) {
  EXPECT_THAT(refusal(config_of("qwen3_5"), {{"patch_size", 14}}),
              AllOf(HasSubstr("preprocessor_config.json: patch_size is 14"),
                    HasSubstr("vision_config.patch_size is 16")));
  EXPECT_THAT(refusal(config_of("gemma3"), {{"size", {{"height", 896}, {"width", 448}}}}),
              HasSubstr("size.width is 448"));
  EXPECT_THAT(refusal(config_of("mistral3"), {{"patch_size", {{"height", 14}, {"width", 16}}}}),
              HasSubstr("patch_size.width is 16"));
}

TEST(ImageProcessor, RefusesWhatItCannotDo) {
  for (const char* key : {"do_resize", "do_rescale"}) {
    EXPECT_THAT(refusal(config_of("qwen3_5"), {{key, false}}), HasSubstr(key));
  }
  EXPECT_THAT(refusal(config_of("gemma3"), {{"do_pan_and_scan", true}}),
              HasSubstr("do_pan_and_scan is true"));
  EXPECT_THAT(refusal(config_of("qwen3_5"), {{"resample", 1}}), HasSubstr("resample is 1"));
  EXPECT_THAT(refusal(config_of("gemma4"), {{"max_soft_tokens", 281}}),
              HasSubstr("70, 140, 280, 560 or 1120"));
  Json odd = config_of("gemma3");
  odd["mm_tokens_per_image"] = 255;
  EXPECT_THAT(refusal(odd, nullptr), HasSubstr("mm_tokens_per_image is 255"));
}

TEST(ImageProcessor, SaysThatTheSmallestSizeIsAboveTheLargest) {
  EXPECT_THAT(refusal(config_of("qwen3_5"), {{"min_pixels", 2000}, {"max_pixels", 1000}}),
              HasSubstr("min_pixels is 2000"));
}

// Every number of every file is replaced by hostile values.
TEST(ImageProcessor, NamesTheKeyOfHostileNumbers) {
  const std::vector<Json> values = {-1,
                                    0,
                                    1e308,
                                    -1e308,
                                    1u << 31,
                                    UINT64_MAX,
                                    INT64_MIN,
                                    "x",
                                    true,
                                    0.5,
                                    Json::array(),
                                    Json::array({1, "x", 2}),
                                    Json::array({1e308, 0, -1}),
                                    Json::object()};
  const std::vector<std::string> integers = {
      "patch_size",         "merge_size",        "temporal_patch_size", "min_pixels",
      "max_pixels",         "size.longest_edge", "size.shortest_edge",  "size.height",
      "max_soft_tokens",    "size.width",        "pooling_kernel_size", "resample",
      "spatial_merge_size", "rescale_factor",    "image_mean",          "image_std",
      "do_normalize",       "do_resize"};
  int refused = 0;
  for (const char* family : {"qwen3_5", "gemma4", "gemma3", "mistral3"}) {
    for (const std::string& key : integers) {
      for (const Json& value : values) {
        const size_t dot = key.find('.');
        Json preprocessor;
        if (dot == std::string::npos) {
          preprocessor[key] = value;
        } else {
          preprocessor[key.substr(0, dot)][key.substr(dot + 1)] = value;
        }
        const std::string error = refusal(config_of(family), preprocessor);
        const std::string first = key.substr(0, dot);
        EXPECT_TRUE(error.empty() || error.find(first) != std::string::npos) << error;
        refused += !error.empty();
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(ImageProcessor, NamesTheKeyOfHostileNumbersOfTheTower) {
  for (const char* family : {"qwen3_5", "gemma4", "gemma3", "mistral3"}) {
    Json config = config_of(family);
    for (const auto& [key, value] : config["vision_config"].items()) {
      for (const Json& hostile : {Json(0), Json(-7), Json(1e300), Json("x"), Json(UINT64_MAX)}) {
        Json changed = config;
        changed["vision_config"][key] = hostile;
        EXPECT_THAT(refusal(changed, nullptr), HasSubstr("vision_config." + key));
      }
    }
  }
}

}  // namespace
}  // namespace octavo
