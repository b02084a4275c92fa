#include "engine/plan_vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/widen.h"
#include "vision/fit_image.h"
#include "vision/image_pixels.h"

namespace octavo {
namespace {

// The most tokens that the family's processor gives to an image.
int64_t largest_of(const ImageProcessor& processor) {
  const int64_t side = processor.token_side();
  const auto tokens = [&](int64_t length) { return (length + side - 1) / side; };
  switch (processor.family) {
    case ImageFamily::kQwen:
      return std::max<int64_t>(1, processor.max_pixels / (side * side));
    case ImageFamily::kGemma4:
      return processor.max_tokens;
    case ImageFamily::kGemma3:
    case ImageFamily::kPixtral:
      break;
  }
  return tokens(processor.max_width) * tokens(processor.max_height);
}

// Of one image. Rows that see one another run in one step, beside a row of each other sequence.
int token_limit(const VisionPlan& vision, const EngineOptions& options, int max_model_len) {
  int limit = std::min(options.vision.max_image_tokens, max_model_len);
  if (vision.sees_block)
    limit = std::min(limit, options.max_num_batched_tokens - options.max_num_seqs + 1);
  return static_cast<int>(std::min<int64_t>(limit, largest_of(vision.processor)));
}

// Whether an image of usual shape can be made small enough.
bool can_fit(const VisionPlan& vision, int max_tokens) {
  constexpr int kUsualSide = 512;
  try {
    fit_image(vision.processor, kUsualSide, kUsualSide, max_tokens);
    return true;
  } catch (const ImageError&) {
    return false;
  }
}

uint64_t row_bytes_of(const VisionPlan& vision, const ModelDescription& model) {
  return widen(vision.row_width()) * size_of(model.dtype);
}

// Of an image with `tokens` tokens, as square as possible: the pass, and ImagePatches, which it copies.
uint64_t encoder_bytes_of(const VisionPlan& vision, const ModelDescription& model,
                          const EngineOptions& options, int tokens) {
  const int height = std::max(1, static_cast<int>(std::sqrt(static_cast<double>(tokens))));
  const int width = (tokens + height - 1) / height;
  const int merge = vision.processor.merge;
  const uint64_t numbers =
      widen(height * merge) * widen(width * merge) * widen(vision.processor.patch_numbers());
  return numbers * sizeof(float) + vision.pass_bytes(height * merge, width * merge,
                                                     options.max_num_batched_tokens, model.dtype);
}

}  // namespace

std::string images_refused(const ModelDescription& model, const EngineOptions& options,
                           int max_model_len) {
  if (!model.vision)
    return model.vision_absent.empty() ? "the model takes no images" : model.vision_absent;
  if (!options.vision.enabled) return "--limit-mm-per-prompt allows no images";
  if (model.pooling) return "an embedding model takes no images";
  if (options.cluster != nullptr)
    return "images are not supported with --pipeline-parallel-size or --tensor-parallel-size";
  const VisionPlan& vision = *model.vision;
  if (vision.image_token >= model.plan.vocab)
    return fmt::format("the image token {} is not in the vocabulary of {} tokens",
                       vision.image_token, model.plan.vocab);
  const int limit = token_limit(vision, options, max_model_len);
  if (!can_fit(vision, limit))
    return fmt::format(
        "an image needs more than {} tokens; raise --image-max-tokens{} or "
        "--max-model-len",
        limit, vision.sees_block ? ", --max-num-batched-tokens" : "");
  return "";
}

ImagePlan plan_images(const ModelDescription& model, const EngineOptions& options,
                      int max_model_len) {
  if (!images_refused(model, options, max_model_len).empty()) return {};
  const VisionPlan& vision = *model.vision;
  const uint64_t row_bytes = row_bytes_of(vision, model);
  ImagePlan plan;
  plan.max_tokens = token_limit(vision, options, max_model_len);
  // A running image is kept, whatever the flag.
  plan.kept_tokens = std::max(
      plan.max_tokens,
      static_cast<int>(std::min<uint64_t>(options.vision.kept_bytes / row_bytes, INT32_MAX)));
  plan.tower_bytes = vision.weights_bytes;
  plan.kept_bytes = widen(plan.kept_tokens) * row_bytes;
  plan.encoder_bytes = encoder_bytes_of(vision, model, options, plan.max_tokens);
  return plan;
}

ImageOptions plan_image_scheduling(const ModelDescription& model, const EngineOptions& options,
                                   int max_model_len) {
  const ImagePlan plan = plan_images(model, options, max_model_len);
  if (plan.max_tokens == 0) return {};
  const VisionPlan& vision = *model.vision;
  const int rows_at_once = options.max_num_batched_tokens;
  return {.enabled = true,
          .three_axes = std::ranges::any_of(
              model.plan.ropes, [](const RopePlan& rope) { return !rope.axes.empty(); }),
          .sees_block = vision.sees_block,
          .max_image_tokens = plan.max_tokens,
          .kept_tokens = plan.kept_tokens,
          .pieces = [vision, rows_at_once](const PromptImage& image) {
            return vision.pieces(image.pixels->grid_h, image.pixels->grid_w, rows_at_once);
          }};
}

}  // namespace octavo
