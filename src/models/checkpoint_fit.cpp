#include "models/checkpoint_fit.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "models/gguf/architectures.h"

namespace octavo {
namespace {

// The prefixes of transformers and of mlx-lm in multimodal checkpoints, and none, for a model saved
// without its head.
constexpr const char* kOtherPrefixes[] = {"model.language_model", "language_model.model", ""};
constexpr const char* kNestedHead = "language_model.lm_head";

bool has_model(const DecoderPlan& plan, const Checkpoint& checkpoint) {
  return checkpoint.find(plan.tensor("embed_tokens.weight")) != nullptr ||
         checkpoint.find(plan.tensor("embeddings.weight")) != nullptr;
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

void fit_to_gguf(DecoderPlan& plan, const GgufArchitecture& architecture) {
  plan.prefix = "model";  // the names in the tables begin with it
  if (architecture.includes_norm_offset) plan.norm_offset = 0;
  for (auto& layer : plan.layers) {
    if (auto* delta = std::get_if<GatedDeltaPlan>(&layer.mixer))
      delta->tiled_values = architecture.tiles_value_heads;
  }
}

// mlx-lm's converter gives some families Llama's names.
void drop_needless_renames(DecoderPlan& plan, const Checkpoint& checkpoint) {
  std::erase_if(plan.renames, [&](const Rename& rename) {
    return std::ranges::any_of(checkpoint.tensors(), [&](const TensorView& tensor) {
      return tensor.name.find(rename.ours) != std::string::npos;
    });
  });
}

// True for a multi-token prediction layer, which is stored after the model's layers.
bool is_of_later_layer(const DecoderPlan& plan, std::string_view name) {
  const std::string layers = plan.tensor("layers.");
  if (!name.starts_with(layers)) return false;
  name.remove_prefix(layers.size());
  size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc{} && layer >= plan.layers.size();
}

// Without the layer's copies of the embedding and of the head: the model's own are used.
bool is_of_mtp(const DecoderPlan& plan, std::string_view name) {
  if (!plan.mtp) return false;
  if (name.starts_with("mtp.")) return true;
  const std::string& at = plan.mtp->at;
  return name.starts_with(at) && !name.starts_with(at + "embed_tokens.") &&
         !name.starts_with(at + "shared_head.head.");
}

}  // namespace

void fit_to_checkpoint(DecoderPlan& plan, const Checkpoint& checkpoint) {
  if (const Gguf* gguf = checkpoint.gguf()) return fit_to_gguf(plan, gguf_architecture(*gguf));
  fit_names(plan, checkpoint);
  drop_needless_renames(plan, checkpoint);
  if (plan.mlx_adds_norm_offset && has_turned_convolution(checkpoint)) plan.norm_offset = 0;
}

bool reads_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint, std::string_view name) {
  if (const Gguf* gguf = checkpoint.gguf()) {
    const bool unused_head = plan.head_name.empty() && name == "output.weight";
    return !unused_head && !gguf_skips(gguf_architecture(*gguf), name, plan.layers.size());
  }
  if (is_of_mtp(plan, name)) return true;
  if (is_of_later_layer(plan, name)) return false;
  // Without a prefix, all tensors belong to the model.
  if (plan.prefix.empty()) return true;
  const bool of_head = !plan.head_name.empty() && name.starts_with(plan.head_name + ".");
  return of_head || name.starts_with(plan.prefix + ".");
}

}  // namespace octavo
