#include "models/checkpoint_fit.h"

#include <algorithm>
#include <string>

namespace octavo {
namespace {

// As transformers and as mlx-lm write the language model beside other parts.
constexpr const char* kNestedPrefixes[] = {"model.language_model", "language_model.model"};
constexpr const char* kNestedHead = "language_model.lm_head";

bool has_model_at(const Checkpoint& checkpoint, const std::string& prefix) {
  return checkpoint.find(prefix + ".embed_tokens.weight") != nullptr;
}

void fit_names(DecoderPlan& plan, const Checkpoint& checkpoint) {
  if (has_model_at(checkpoint, plan.prefix)) return;
  for (const char* prefix : kNestedPrefixes) {
    if (has_model_at(checkpoint, prefix)) plan.prefix = prefix;
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
  // Saved without its head a model is all there is, and has no prefix.
  if (checkpoint.gguf() != nullptr || !has_model_at(checkpoint, plan.prefix)) return true;
  return name.starts_with(plan.prefix + ".") || name.starts_with(plan.head_name + ".");
}

}  // namespace octavo
