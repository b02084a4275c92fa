#include "models/find_mtp.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace octavo {
namespace {

constexpr const char* kAdvice = R"(use '{"method": "ngram"}' or '{"method": "none"}')";

[[noreturn]] void refuse_mtp(const std::string& why) {
  throw SetupError(
      fmt::format("--speculative-config: the method mtp is not possible: {}; {}", why, kAdvice));
}

bool has_module(const Checkpoint& checkpoint, const std::string& module) {
  return std::ranges::any_of(checkpoint.tensors(), [&](const TensorView& tensor) {
    return tensor.name.starts_with(module + ".");
  });
}

// Layers beyond the first would need drafts of drafts.
void require_one(const Config& config, const char* key) {
  const int count = config.integer_or(key, 1);
  if (count != 1)
    refuse_mtp(fmt::format("{} is {}; only one prediction layer is supported", key, count));
}

// The prediction layer of a hybrid has full attention.
LayerPlan attention_layer(const DecoderPlan& plan) {
  const auto found = std::find_if(
      plan.layers.rbegin(), plan.layers.rend(),
      [](const LayerPlan& layer) { return std::holds_alternative<AttentionPlan>(layer.mixer); });
  if (found == plan.layers.rend()) refuse_mtp("the model has no attention layer");
  return *found;
}

}  // namespace

MtpPlan find_mtp(const Config& config, const DecoderPlan& plan, const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) refuse_mtp("it is not supported in GGUF files");
  if (has_module(checkpoint, "mtp.fc")) {
    require_one(config, "mtp_num_hidden_layers");
    if (config.boolean_or("mtp_use_dedicated_embeddings", false))
      refuse_mtp("mtp_use_dedicated_embeddings is true, which is not supported");
    return {.layer = attention_layer(plan),
            .at = "mtp.layers.0.",
            .embedding_norm = "mtp.pre_fc_norm_embedding.weight",
            .hidden_norm = "mtp.pre_fc_norm_hidden.weight",
            .projection = "mtp.fc",
            .norm = "mtp.norm.weight"};
  }
  const std::string at = plan.tensor(fmt::format("layers.{}.", plan.layers.size()));
  if (has_module(checkpoint, at + "eh_proj")) {
    require_one(config, "num_nextn_predict_layers");
    return {.layer = plan.layers.back(),
            .at = at,
            .embedding_norm = at + "enorm.weight",
            .hidden_norm = at + "hnorm.weight",
            .projection = at + "eh_proj",
            .norm = at + "shared_head.norm.weight"};
  }
  refuse_mtp("the checkpoint has no multi-token prediction layer");
}

}  // namespace octavo
