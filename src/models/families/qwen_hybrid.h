// qwen_hybrid.h - shared by Qwen3-Next and Qwen3.5: three gated delta layers for each gated
// attention layer. No MLX.
#pragma once

#include "models/config.h"
#include "models/decoder_plan.h"

namespace octavo {

DecoderPlan plan_qwen_hybrid(const Config& config, const char* family);

}  // namespace octavo
