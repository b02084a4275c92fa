// Granite 3, and Granite 4 without Mamba layers: scales on embeddings, scores, sublayer results and
// logits.
#include <cmath>

#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

void finish_granite(GgufReader& file, nlohmann::json& config) {
  // In this architecture the key means "has rope".
  if (file.take("rope.scaling.finetuned") == nlohmann::json(false))
    file.refuse("rope.scaling.finetuned", "is false; a Granite without rope is not supported");
  if (!config.contains("attention_multiplier"))
    config["attention_multiplier"] = 1 / std::sqrt(gguf_number(config, "head_dim"));
}

}  // namespace

GgufArchitecture gguf_granite() {
  return {.name = "granite",
          .model_type = "granite",
          .keys = {{"attention.scale", "attention_multiplier"},
                   {"embedding_scale", "embedding_multiplier"},
                   {"residual_scale", "residual_multiplier"},
                   {"logit_scale", "logits_scaling"}},
          // Files of Granite 4 describe the experts and Mamba layers that other sizes have.
          .unused_keys = {"expert_count", "expert_used_count", "expert_shared_feed_forward_length",
                          "ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size",
                          "ssm.time_step_rank"},
          .permutes_rope = true,
          .adapt = finish_granite};
}

}  // namespace octavo
