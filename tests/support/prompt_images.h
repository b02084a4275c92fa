// prompt_images.h - images in prompts as the model sees them, for test programs.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/sha256.h"
#include "engine/image_encoder.h"
#include "models/model_description.h"
#include "models/weight_source.h"
#include "scheduler/image_options.h"
#include "scheduler/prompt_image.h"
#include "vision/fit_image.h"
#include "vision/image_pixels.h"
#include "vision/resize.h"

namespace octavo {

// `image` with its first placeholder at `offset` of the prompt.
inline PromptImage prompt_image(const VisionPlan& vision, const Image& image, int offset,
                                int max_tokens = 1 << 16) {
  const ImageSize size = fit_image(vision.processor, image.width, image.height, max_tokens);
  auto pixels = std::make_shared<ImagePixels>();
  pixels->resized = resize(image, size.width, size.height, vision.processor.filter);
  pixels->grid_h = size.grid_h;
  pixels->grid_w = size.grid_w;
  PromptImage result;
  result.identifier = fmt::format("{}x{} {:02x}", size.width, size.height,
                                  fmt::join(sha256(pixels->resized.rgb), ""));
  result.offset = offset;
  result.grid_h = size.grid_h / vision.processor.merge;
  result.grid_w = size.grid_w / vision.processor.merge;
  result.row_breaks = vision.break_token >= 0;
  result.pixels = std::move(pixels);
  return result;
}

inline bool has_three_axes(const DecoderPlan& plan) {
  return std::ranges::any_of(plan.ropes, [](const RopePlan& rope) { return !rope.axes.empty(); });
}

// The tower of a model, loaded after the language model.
struct LoadedTower {
  LoadedTower(const ModelDescription& model, WeightSource& source, int rows)
      : plan(*model.vision),
        rows_at_once(rows),
        tower(load_vision_tower(plan, model.dtype, source)) {}

  int pieces(const PromptImage& image) const {
    return plan.pieces(image.pixels->grid_h, image.pixels->grid_w, rows_at_once);
  }

  VisionPlan plan;
  int rows_at_once;
  std::unique_ptr<VisionTower> tower;
};

}  // namespace octavo
