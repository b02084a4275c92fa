// families.h - the model families octavo knows. No MLX.
#pragma once

#include <string>
#include <vector>

#include "models/decoder_plan.h"

namespace octavo {

// The plan of the family that config's model_type names. Throws SetupError listing the nearest
// known ones when there is none, or naming the field a family cannot honour.
DecoderPlan plan_model(const Config& config);

// Every model_type there is a family for.
std::vector<std::string> known_model_types();

// One per family file.
DecoderPlan plan_gemma2(const Config& config);
DecoderPlan plan_gemma3(const Config& config);
DecoderPlan plan_gemma3_text(const Config& config);
DecoderPlan plan_llama(const Config& config);
DecoderPlan plan_mistral(const Config& config);
DecoderPlan plan_qwen2(const Config& config);
DecoderPlan plan_qwen3(const Config& config);
DecoderPlan plan_smollm3(const Config& config);

}  // namespace octavo
