// qwen_experts.h - reads the expert configuration of Qwen's MoE families. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// Experts chosen by softmax over all of them, and a shared expert if the config has one.
MoePlan plan_qwen_experts(const Config& config);

// Sets the experts in every decoder_sparse_step-th layer except mlp_only_layers. The others keep
// their dense MLP.
void place_qwen_experts(const Config& config, const MoePlan& experts, DecoderPlan& plan);

}  // namespace octavo
