// families.h - the supported model families. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/decoder_plan.h"

namespace octavo {

// Plans the model of config's model_type. Throws SetupError that lists the closest supported types
// if it is unknown, or names the unsupported field.
DecoderPlan plan_model(const Config& config);

// True for models whose rows see the whole prompt, and which generate nothing.
bool is_encoder_type(std::string_view model_type);

// Every supported model_type.
std::vector<std::string> known_model_types();

// One per family file.
DecoderPlan plan_bert(const Config& config);
DecoderPlan plan_deepseek_v2(const Config& config);
DecoderPlan plan_deepseek_v3(const Config& config);
DecoderPlan plan_glm4_moe_lite(const Config& config);
DecoderPlan plan_gemma2(const Config& config);
DecoderPlan plan_gemma3(const Config& config);
DecoderPlan plan_gemma4(const Config& config);
DecoderPlan plan_glm4(const Config& config);
DecoderPlan plan_glm4_moe(const Config& config);
DecoderPlan plan_gpt_oss(const Config& config);
DecoderPlan plan_granite(const Config& config);
DecoderPlan plan_granitemoehybrid(const Config& config);
DecoderPlan plan_lfm2(const Config& config);
DecoderPlan plan_lfm2_moe(const Config& config);
DecoderPlan plan_llama(const Config& config);
DecoderPlan plan_minicpm3(const Config& config);
DecoderPlan plan_mistral(const Config& config);
DecoderPlan plan_mixtral(const Config& config);
DecoderPlan plan_modernbert(const Config& config);
DecoderPlan plan_nemotron_h(const Config& config);
DecoderPlan plan_nomic_bert(const Config& config);
DecoderPlan plan_olmo2(const Config& config);
DecoderPlan plan_olmo3(const Config& config);
DecoderPlan plan_phi3(const Config& config);
DecoderPlan plan_qwen2(const Config& config);
DecoderPlan plan_qwen2_moe(const Config& config);
DecoderPlan plan_qwen3(const Config& config);
DecoderPlan plan_qwen3_moe(const Config& config);
DecoderPlan plan_qwen3_5(const Config& config);
DecoderPlan plan_qwen3_next(const Config& config);
DecoderPlan plan_qwen3_vl(const Config& config);
DecoderPlan plan_qwen3_vl_moe(const Config& config);
DecoderPlan plan_roberta(const Config& config);
DecoderPlan plan_smollm3(const Config& config);
DecoderPlan plan_xlm_roberta(const Config& config);

}  // namespace octavo
