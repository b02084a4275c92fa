#include "models/checkpoint_fit.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "models/gguf/architectures.h"

namespace octavo {
namespace {

// The prefixes of transformers and of mlx-lm in multimodal checkpoints, and none, for a model saved
// without its head.
constexpr const char* kOtherPrefixes[] = {"model.language_model", "language_model.model", ""};
constexpr const char* kNestedHead = "language_model.lm_head";

// The name of a tensor, or the beginning of one, in the checkpoint.
std::string in_file(const DecoderPlan& plan, const std::string& name) {
  return renamed(plan.tensor(name), plan.renames);
}

bool has_model(const DecoderPlan& plan, const Checkpoint& checkpoint) {
  return checkpoint.find(in_file(plan, "embed_tokens.weight")) != nullptr ||
         checkpoint.find(plan.tensor("embed_tokens.weight")) != nullptr ||
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

// mlx-lm's converter gives some families Llama's names. Names of encoders may include Llama's.
void drop_needless_renames(DecoderPlan& plan, const Checkpoint& checkpoint) {
  const auto any_has = [&](const std::string& part) {
    return std::ranges::any_of(checkpoint.tensors(), [&](const TensorView& tensor) {
      return tensor.name.find(part) != std::string::npos;
    });
  };
  std::erase_if(plan.renames, [&](const Rename& rename) {
    return any_has(rename.ours) && !(plan.encoder && any_has(rename.theirs));
  });
}

// The number after `layers` at the start of the name.
std::optional<size_t> layer_in(std::string_view name, std::string_view layers) {
  if (!name.starts_with(layers)) return std::nullopt;
  name.remove_prefix(layers.size());
  size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc{} ? std::optional(layer) : std::nullopt;
}

// True for a multi-token prediction layer, which is stored after the model's layers.
bool is_of_later_layer(const DecoderPlan& plan, std::string_view name) {
  return layer_in(name, in_file(plan, "layers.")).value_or(0) >= plan.layers.size();
}

bool is_in_module(std::string_view name, const std::string& module) {
  return !module.empty() && name.starts_with(module + ".");
}

bool is_of_score_head(const DecoderPlan& plan, std::string_view name) {
  if (!plan.score) return false;
  const ScoreHeadPlan& score = *plan.score;
  return is_in_module(name, score.dense) || is_in_module(name, score.norm) ||
         is_in_module(name, score.out);
}

// The heads of pretraining and of classifiers, and transformers' lists of positions.
bool is_beside_encoder(const DecoderPlan& plan, std::string_view name) {
  if (!plan.encoder) return false;
  for (const char* part : {"pooler.", "cls.", "classifier.", "head.", "decoder.", "lm_head."}) {
    if (name.starts_with(part) || name.starts_with(plan.tensor(part))) return true;
  }
  return name.ends_with("position_ids");
}

// The tables of an encoder beside that of tokens, and the norm of their sum.
bool is_of_encoder_input(const DecoderPlan& plan, std::string_view name, bool is_gguf) {
  if (!plan.encoder) return false;
  if (is_gguf) {
    return name.starts_with("position_embd.") || name.starts_with("token_types.") ||
           name.starts_with("token_embd_norm.");
  }
  const EncoderPlan& encoder = *plan.encoder;
  for (const std::string& module : {encoder.positions, encoder.token_types, encoder.norm}) {
    if (!module.empty() && is_in_module(name, in_file(plan, module))) return true;
  }
  return false;
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
    if (is_of_score_head(plan, name)) return true;
    const bool unused_head =
        (plan.head_name.empty() && name == "output.weight") || name.starts_with("cls.");
    return !unused_head && !gguf_skips(gguf_architecture(*gguf), name, plan.layers.size());
  }
  if (is_of_mtp(plan, name) || is_of_score_head(plan, name)) return true;
  if (is_of_later_layer(plan, name) || is_beside_encoder(plan, name)) return false;
  // Without a prefix, all tensors belong to the model.
  if (plan.prefix.empty()) return true;
  const bool of_head = !plan.head_name.empty() && name.starts_with(plan.head_name + ".");
  return of_head || name.starts_with(plan.prefix + ".");
}

TensorPlace place_of_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint,
                            std::string_view name) {
  const bool is_gguf = checkpoint.gguf() != nullptr;
  if (!is_gguf && is_of_mtp(plan, name)) return {TensorRole::kMtp};
  if (const auto layer = layer_in(name, is_gguf ? "blk." : in_file(plan, "layers.")))
    return *layer < plan.layers.size() ? TensorPlace{TensorRole::kLayer, *layer}
                                       : TensorPlace{TensorRole::kMtp};
  if (name.find("per_layer") != std::string_view::npos || is_of_encoder_input(plan, name, is_gguf))
    return {TensorRole::kLayerInput};
  const bool embeds = is_gguf ? name.starts_with("token_embd.")
                              : name.starts_with(in_file(plan, "embed_tokens.")) ||
                                    name.starts_with(plan.tensor("embeddings."));
  return {embeds ? TensorRole::kEmbeddings : TensorRole::kOutput};
}

uint64_t stage_file_bytes(const Checkpoint& checkpoint, const DecoderPlan& plan,
                          const StageRange& stage) {
  const auto reads = [&](const TensorPlace& place) {
    switch (place.role) {
      case TensorRole::kEmbeddings:
        return stage.has_embeddings(plan);
      case TensorRole::kLayerInput:
        return stage.embeds();
      case TensorRole::kLayer:
        return static_cast<int>(place.layer) >= stage.first &&
               static_cast<int>(place.layer) < stage.last;
      case TensorRole::kOutput:
      case TensorRole::kMtp:
        return stage.draws(plan);
    }
    return false;
  };
  uint64_t bytes = 0;
  for (const TensorView& tensor : checkpoint.tensors()) {
    if (reads_tensor(plan, checkpoint, tensor.name) &&
        reads(place_of_tensor(plan, checkpoint, tensor.name)))
      bytes += tensor.bytes.size();
  }
  return bytes;
}

}  // namespace octavo
