// qwen_hybrid.h - what Qwen3-Next and Qwen3.5 have in common: three layers of a gated delta rule to
// one of gated attention. No MLX.
#pragma once

#include "models/config.h"
#include "models/decoder_plan.h"

namespace octavo {

DecoderPlan plan_qwen_hybrid(const Config& config, const char* family);

}  // namespace octavo
