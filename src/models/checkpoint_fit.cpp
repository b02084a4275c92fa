#include "models/checkpoint_fit.h"

#include <algorithm>
#include <string>

namespace octavo {
namespace {

// The prefixes of transformers and of mlx-lm in multimodal checkpoints, and none, for a model saved
// without its head.
constexpr const char* kOtherPrefixes[] = {"model.language_model", "language_model.model", ""};
constexpr const char* kNestedHead = "language_model.lm_head";

bool has_model(const DecoderPlan& plan, const Checkpoint& checkpoint) {
  return checkpoint.find(plan.tensor("embed_tokens.weight")) != nullptr;
}

void fit_names(DecoderPlan& plan, const Checkpoint& checkpoint) {
  if (has_model(plan, checkpoint)) return;
  const std::string usual = plan.prefix;
  for (const char* prefix : kOtherPrefixes) {
    plan.prefix = prefix;
    if (has_model(plan, checkpoint)) break;
    plan.prefix = usual;
  }
  if (checkpoint.find(std::string(kNestedHead) + ".weight") != nullptr)
    plan.head_name = kNestedHead;
}

bool has_turned_convolution(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), [](const TensorView& tensor) {
    return tensor.name.ends_with("conv1d.weight") && tensor.shape.size() == 3 &&
           tensor.shape[2] == 1 && tensor.shape[1] != 1;
  });
}

}  // namespace

void fit_to_checkpoint(DecoderPlan& plan, const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return;
  fit_names(plan, checkpoint);
  if (plan.mlx_adds_norm_offset && has_turned_convolution(checkpoint)) plan.norm_offset = 0;
}

bool reads_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint, std::string_view name) {
  // Without a prefix, all tensors belong to the model.
  if (checkpoint.gguf() != nullptr || plan.prefix.empty()) return true;
  const bool of_head = !plan.head_name.empty() && name.starts_with(plan.head_name + ".");
  const bool of_mtp = plan.mtp && name.starts_with("mtp.");
  return of_head || of_mtp || name.starts_with(plan.prefix + ".");
}

}  // namespace octavo
