// deepseek_like.h - the reading of a config that DeepSeek's relatives share. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// Latent attention in every layer; from layer first_k_dense_replace on, experts beside shared ones
// in every moe_layer_freq-th. Scores and how groups of experts are compared are left to the family.
DecoderPlan plan_deepseek_like(const Config& config, const char* family);

// DeepSeek-V3's way to pick experts: by sigmoid scores with a bias that does not weigh.
void route_by_sigmoid(const Config& config, DecoderPlan& plan);

// Changes the plan of every layer of latent attention, or of every layer with experts.
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
