// vision_settings.h - reads the settings of a vision tower from config.json. No MLX.
#pragma once

#include "models/config.h"
#include "models/decoder_plan.h"
#include "models/vision/vision_plan.h"

namespace octavo {

// Fills everything but names, parameters and bytes. `whole` is config.json with its vision_config;
// `plan` has the processor. Throws SetupError that names a key that is missing, has no valid value, or
// has one that is not supported.
void read_vision_settings(const Config& whole, const DecoderPlan& text, VisionPlan& plan);

}  // namespace octavo
