// plan_vision.h - plans how an engine takes images, before anything is loaded. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine_options.h"
#include "models/model_description.h"
#include "scheduler/image_options.h"

namespace octavo {

struct ImagePlan {
  int max_tokens = 0;          // rows of the largest image
  int kept_tokens = 0;         // rows that are kept at once
  uint64_t tower_bytes = 0;    // weights
  uint64_t kept_bytes = 0;     // of kept_tokens rows
  uint64_t encoder_bytes = 0;  // of the largest image while it is encoded
};

// Why the engine takes no images; empty if it does. `max_model_len`: the longest sequence.
std::string images_refused(const ModelDescription& model, const EngineOptions& options,
                           int max_model_len);

// All zero if images are refused.
ImagePlan plan_images(const ModelDescription& model, const EngineOptions& options,
                      int max_model_len);

ImageOptions plan_image_scheduling(const ModelDescription& model, const EngineOptions& options,
                                   int max_model_len);

}  // namespace octavo
