// qwen_experts.h - the reading of experts that Qwen's mixtures share. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// Experts picked by softmax over all of them, and a shared one where the config has it.
MoePlan plan_qwen_experts(const Config& config);

// Gives them to the layers that have any: every decoder_sparse_step-th one but mlp_only_layers. The
// others keep their dense MLP.
void place_qwen_experts(const Config& config, const MoePlan& experts, DecoderPlan& plan);

}  // namespace octavo
