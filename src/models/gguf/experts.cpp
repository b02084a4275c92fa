#include "models/gguf/experts.h"

#include <fmt/format.h>

namespace octavo {

void add_deepseek_expert_keys(GgufArchitecture& architecture) {
  for (const GgufKey& key :
       {GgufKey{"expert_count", "n_routed_experts"},
        GgufKey{"expert_shared_count", "n_shared_experts"},
        GgufKey{"expert_used_count", "num_experts_per_tok"},
        GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
        GgufKey{"expert_weights_scale", "routed_scaling_factor"},
        GgufKey{"expert_weights_norm", "norm_topk_prob"}, GgufKey{"expert_group_count", "n_group"},
        GgufKey{"expert_group_used_count", "topk_group"}})
    architecture.keys.push_back(key);
}

void add_deepseek_expert_names(GgufArchitecture& architecture) {
  for (const GgufName& name : {GgufName{"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                               GgufName{"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
                               GgufName{"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
                               GgufName{"mlp.shared_experts.down_proj.", "ffn_down_shexp."}})
    architecture.names.push_back(name);
}

void require_sigmoid_experts(GgufReader& file) {
  constexpr int kUnstated = 0;
  constexpr int kSigmoidScores = 2;
  const nlohmann::json score = file.take_one("expert_gating_func");
  if (score.is_null() || score == kUnstated || score == kSigmoidScores) return;
  file.refuse("expert_gating_func",
              fmt::format("is {}; only sigmoid ({}) is supported", score.dump(), kSigmoidScores));
}

void read_expert_weights_norm(nlohmann::json& config) {
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
}

}  // namespace octavo
