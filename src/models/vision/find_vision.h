// find_vision.h - finds a checkpoint's vision tower. Shows no MLX.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"
#include "models/vision/vision_plan.h"

namespace octavo {

struct FoundVision {
  std::optional<VisionPlan> plan;
  std::string absent = {};  // without a plan: why the model takes no images
};

// Reads config.json, the settings of the image processor beside it, and the headers of the tower's
// tensors. If a tower is missing, damaged or not supported, the text can still be served, so these do not throw.
// `text`: the language model, fitted to the checkpoint. `processor_kwargs`: a JSON object that is merged
// over the processor's settings, or empty; throws SetupError that names --mm-processor-kwargs if it is
// not valid for the model.
FoundVision find_vision(const Checkpoint& checkpoint, const DecoderPlan& text,
                        std::string_view processor_kwargs = {});

}  // namespace octavo
