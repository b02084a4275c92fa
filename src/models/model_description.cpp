#include "models/model_description.h"

#include <algorithm>

#include "models/config.h"
#include "models/families.h"

namespace octavo {
namespace {

// GGUF files say nothing of the type they were trained in: bf16. Others say it in the config, or it
// is that of their (never quantised) final norm.
DType checkpoint_dtype(const Checkpoint& checkpoint, const Config& config) {
  if (checkpoint.gguf() != nullptr) return DType::kBFloat16;
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (config.has(key)) return parse_dtype(config.text(key), key);
  }
  const TensorView* norm = checkpoint.find("model.norm.weight");
  if (norm != nullptr && norm->type == TensorType::F32) return DType::kFloat32;
  if (norm != nullptr && norm->type == TensorType::F16) return DType::kFloat16;
  return DType::kBFloat16;
}

uint64_t count_parameters(const DecoderPlan& plan) {
  const auto hidden = static_cast<uint64_t>(plan.hidden);
  uint64_t count =
      static_cast<uint64_t>(plan.vocab) * hidden * (plan.tied_embeddings ? 1 : 2) + hidden;
  for (const auto& layer : plan.layers) {
    const AttentionPlan& a = layer.attention;
    const auto q = static_cast<uint64_t>(a.heads) * static_cast<uint64_t>(a.head_dim);
    const auto kv = static_cast<uint64_t>(a.kv_heads) * static_cast<uint64_t>(a.head_dim);
    const auto ffn = static_cast<uint64_t>(layer.mlp.intermediate);
    count += 2 * hidden + hidden * (2 * q + 2 * kv) + 3 * hidden * ffn;
    if (a.qk_norm) count += 2 * static_cast<uint64_t>(a.head_dim);
    if (a.qkv_bias) count += q + 2 * kv;
    if (a.output_bias) count += hidden;
    if (layer.mlp.bias) count += 2 * ffn + hidden;
  }
  return count;
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint, std::optional<DType> dtype) {
  const Config config = read_config(checkpoint);
  ModelDescription description;
  description.plan = plan_model(config);
  description.dtype = dtype.value_or(checkpoint_dtype(checkpoint, config));
  description.stop_token_ids = stop_token_ids(checkpoint, config);
  description.parameters = count_parameters(description.plan);
  description.file_bytes = checkpoint.file_bytes();
  description.container = checkpoint.gguf() != nullptr ? "GGUF" : "safetensors";
  for (const auto& tensor : checkpoint.tensors()) {
    description.bytes_by_type[std::string(tensor_type_name(tensor.type))] += tensor.bytes.size();
  }
  return description;
}

uint64_t step_bytes(const ModelDescription& model, int tokens, int logit_rows) {
  // MLX frees an array when its last reader is queued, and queues ahead: a layer's arrays and the
  // next one's may live at once. Linear widens its input to float32.
  uint64_t widest = 0;
  for (const auto& layer : model.plan.layers) {
    const auto qkv = static_cast<uint64_t>(
        (layer.attention.heads * 4 + layer.attention.kv_heads * 4) * layer.attention.head_dim);
    const auto mlp = 3 * static_cast<uint64_t>(layer.mlp.intermediate);
    widest = std::max(widest, qkv + mlp + 6 * static_cast<uint64_t>(model.plan.hidden));
  }
  const auto rows = static_cast<uint64_t>(tokens);
  uint64_t most_inputs = static_cast<uint64_t>(model.plan.hidden);
  for (const auto& layer : model.plan.layers) {
    most_inputs = std::max(most_inputs, static_cast<uint64_t>(layer.mlp.intermediate));
  }
  return 2 * rows * widest * size_of(model.dtype) + rows * most_inputs * sizeof(float) +
         static_cast<uint64_t>(logit_rows) * static_cast<uint64_t>(model.plan.vocab) *
             sizeof(float);
}

}  // namespace octavo
