// deepseek_like.h - reads the config keys shared by DeepSeek-like families. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// Latent attention in every layer; from layer first_k_dense_replace on, experts with shared experts
// in every moe_layer_freq-th layer. The family sets how experts are scored and groups compared.
DecoderPlan plan_deepseek_like(const Config& config, const char* family);

// Experts with DeepSeek's keys: n_routed_experts, n_group, routed_scaling_factor, ...
MoePlan plan_deepseek_experts(const Config& config);

// Sets them in the layers described above. The others keep their MLP.
void place_deepseek_experts(const Config& config, DecoderPlan& plan);

// DeepSeek-V3's routing: sigmoid scores, with a bias that affects the choice but not the weights.
void route_by_sigmoid(const Config& config, DecoderPlan& plan);

// Applies a change to every layer with latent attention, or with experts.
template <typename Change>
void each_attention(DecoderPlan& plan, const Change& change) {
  for (auto& layer : plan.layers) change(std::get<MlaPlan>(layer.mixer));
}
template <typename Change>
void each_experts(DecoderPlan& plan, const Change& change) {
  for (auto& layer : plan.layers) {
    if (auto* experts = std::get_if<MoePlan>(&layer.ffn)) change(*experts);
  }
}

}  // namespace octavo
