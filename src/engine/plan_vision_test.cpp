#include "engine/plan_vision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/plan_engine.h"
#include "vision/image_pixels.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kLongest = 8192;  // tokens of a sequence

// At most 1024 tokens per image, of 32 x 32 pixels each.
ModelDescription model_with_tower() {
  ModelDescription model;
  model.plan.vocab = 1000;
  model.plan.hidden = 64;
  model.dtype = DType::kBFloat16;
  VisionPlan vision;
  vision.processor.max_pixels = 1024 * 1024;
  vision.image_token = 900;
  vision.text_hidden = 64;
  vision.weights_bytes = 5000;
  model.vision = vision;
  return model;
}

// 128 bytes per row.
EngineOptions image_options(uint64_t kept_rows = 4096) {
  EngineOptions options;
  options.vision.kept_bytes = kept_rows * 128;
  return options;
}

TEST(PlanVision, AModelWithoutATowerSaysWhy) {
  ModelDescription model = model_with_tower();
  EXPECT_THAT(images_refused(model, image_options(), kLongest), IsEmpty());
  model.vision.reset();
  model.vision_absent = "the checkpoint has no vision tower";
  EXPECT_EQ(images_refused(model, image_options(), kLongest), model.vision_absent);
  EXPECT_EQ(plan_images(model, image_options(), kLongest).max_tokens, 0);
  EXPECT_FALSE(plan_image_scheduling(model, image_options(), kLongest).enabled);
}

TEST(PlanVision, RefusalsNameTheReason) {
  ModelDescription model = model_with_tower();
  EngineOptions options = image_options();
  options.vision.enabled = false;
  EXPECT_THAT(images_refused(model, options, kLongest), HasSubstr("--limit-mm-per-prompt"));
  model.pooling.emplace();
  EXPECT_THAT(images_refused(model, image_options(), kLongest), HasSubstr("embedding model"));
  model = model_with_tower();
  model.vision->image_token = 1000;
  EXPECT_THAT(images_refused(model, image_options(), kLongest), HasSubstr("vocabulary"));
}

TEST(PlanVision, AnImageHasNoMoreTokensThanEveryLimit) {
  ModelDescription model = model_with_tower();
  EngineOptions options = image_options();
  EXPECT_EQ(plan_images(model, options, kLongest).max_tokens, 1024) << "the processor's";
  EXPECT_EQ(plan_images(model, options, 700).max_tokens, 700) << "the context";
  options.vision.max_image_tokens = 256;
  EXPECT_EQ(plan_images(model, options, kLongest).max_tokens, 256) << "the flag";
  options = image_options();
  options.max_num_batched_tokens = 512;
  EXPECT_EQ(plan_images(model, options, kLongest).max_tokens, 1024);
  model.vision->sees_block = true;
  options.max_num_seqs = 13;
  EXPECT_EQ(plan_images(model, options, kLongest).max_tokens, 500)
      << "a step beside a row of each other sequence";
}

TEST(PlanVision, AnImageThatCannotBeSmallerIsRefused) {
  ModelDescription model = model_with_tower();
  ImageProcessor& processor = model.vision->processor;
  processor.family = ImageFamily::kGemma3;
  processor.patch = 14;
  processor.merge = 4;
  processor.max_width = processor.max_height = 896;
  model.vision->sees_block = true;
  EngineOptions options = image_options();
  EXPECT_EQ(plan_images(model, options, kLongest).max_tokens, 256);
  options.max_num_batched_tokens = 128;
  EXPECT_THAT(images_refused(model, options, kLongest), HasSubstr("--max-num-batched-tokens"));
}

TEST(PlanVision, TheLargestImageIsKeptWhateverTheFlag) {
  const ModelDescription model = model_with_tower();
  const ImagePlan plan = plan_images(model, image_options(4096), kLongest);
  EXPECT_EQ(plan.kept_tokens, 4096);
  EXPECT_EQ(plan.kept_bytes, 4096u * 128);
  EXPECT_EQ(plan.tower_bytes, 5000u);
  EXPECT_GT(plan.encoder_bytes, 0u);
  EXPECT_EQ(plan_images(model, image_options(0), kLongest).kept_tokens, 1024);
}

TEST(PlanVision, RowsWithSeveralPartsTakeMoreMemory) {
  ModelDescription model = model_with_tower();
  model.vision->shape.deepstack = {0, 1, 2};
  const ImagePlan plan = plan_images(model, image_options(4096), kLongest);
  EXPECT_EQ(plan.kept_tokens, 1024);
  EXPECT_EQ(plan.kept_bytes, 1024u * 4 * 128);
}

TEST(PlanVision, TheSchedulerKnowsThePieces) {
  ModelDescription model = model_with_tower();
  model.plan.ropes.emplace_back();
  const EngineOptions options = image_options();
  const ImageOptions images = plan_image_scheduling(model, options, kLongest);
  EXPECT_TRUE(images.enabled);
  EXPECT_FALSE(images.three_axes);
  EXPECT_EQ(images.max_image_tokens, 1024);
  PromptImage image;
  auto pixels = std::make_shared<ImagePixels>();
  pixels->grid_h = 4;
  pixels->grid_w = 6;
  image.pixels = pixels;
  EXPECT_EQ(images.pieces(image), model.vision->pieces(4, 6, options.max_num_batched_tokens));
  model.plan.ropes[0].axes = {0, 1, 2};
  EXPECT_TRUE(plan_image_scheduling(model, options, kLongest).three_axes);
}

}  // namespace
}  // namespace octavo
