#include "models/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/compute_pool.h"
#include "kernels/cpu/linear.h"
#include "models/checkpoint_fit.h"
#include "models/config.h"
#include "models/families.h"

namespace octavo {
namespace {

// GGUF files say nothing of the type they were trained in: bf16. Others say it in the config, or it
// is that of their (never quantised) final norm.
DType checkpoint_dtype(const Checkpoint& checkpoint, const Config& config,
                       const DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return DType::kBFloat16;
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (config.has(key)) return parse_dtype(config.text(key), key);
  }
  const TensorView* norm = checkpoint.find(plan.prefix + ".norm.weight");
  if (norm != nullptr && norm->type == TensorType::F32) return DType::kFloat32;
  if (norm != nullptr && norm->type == TensorType::F16) return DType::kFloat16;
  return DType::kBFloat16;
}

// What an MLX checkpoint says of most of its layers. The loader itself goes by the tensors' shapes.
std::string quantization_of(const Config& config) {
  const auto quantization = config.object("quantization");
  if (!quantization) return "";
  return fmt::format("{} {}-bit in groups of {}", quantization->text_or("mode", "affine"),
                     quantization->integer_or("bits", 4),
                     quantization->integer_or("group_size", 64));
}

// What a tensor takes in memory: matrices are packed in strips of 16 rows and units of 64 inputs
// (kernels/packed_weight.h), the last of each filled with zeros. The inputs of an MLX-quantised
// matrix are not seen here; at most half a unit a row is missed.
uint64_t packed_size(const TensorView& tensor) {
  if (tensor.shape.size() != 2) return tensor.bytes.size();
  const auto rows = static_cast<uint64_t>(tensor.shape[0]);
  const auto cols = static_cast<uint64_t>(tensor.shape[1]);
  if (rows == 0 || cols == 0) return 0;
  uint64_t row_bytes = tensor.bytes.size() / rows;
  const bool dense = tensor.type == TensorType::F32 || tensor.type == TensorType::F16 ||
                     tensor.type == TensorType::BF16;
  if (dense) row_bytes = row_bytes / cols * ((cols + kUnitCols - 1) / kUnitCols * kUnitCols);
  return row_bytes * ((rows + kStripRows - 1) / kStripRows * kStripRows);
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint, std::optional<DType> dtype) {
  const Config config = read_config(checkpoint);
  ModelDescription description;
  description.plan = plan_model(config);
  fit_to_checkpoint(description.plan, checkpoint);
  description.dtype = dtype.value_or(checkpoint_dtype(checkpoint, config, description.plan));
  description.stop_token_ids = stop_token_ids(checkpoint, config);
  description.parameters = description.plan.parameters();
  description.file_bytes = checkpoint.file_bytes();
  description.quantization = quantization_of(config);
  description.container = checkpoint.gguf() != nullptr ? "GGUF" : "safetensors";
  for (const auto& tensor : checkpoint.tensors()) {
    if (!reads_tensor(description.plan, checkpoint, tensor.name)) continue;
    description.weights_bytes += packed_size(tensor);
    description.bytes_by_type[std::string(tensor_type_name(tensor.type))] += tensor.bytes.size();
  }
  return description;
}

uint64_t step_bytes(const ModelDescription& model, int tokens, int logit_rows) {
  // MLX allocates results as it queues them, ahead of the kernels. The engine caps what it holds at
  // half of this, at which point MLX waits for some ten operations, less than a layer, at a time.
  constexpr uint64_t kLayersInFlight = 4;
  const std::vector<uint64_t> elements = model.plan.row_elements();
  const uint64_t widest = *std::ranges::max_element(elements);
  const auto rows = static_cast<uint64_t>(tokens);
  const auto scratch = static_cast<uint64_t>(cpu::linear_scratch_bytes(
      tokens, static_cast<int64_t>(model.plan.widest_input()), compute_pool().threads()));
  const uint64_t logits =
      static_cast<uint64_t>(logit_rows) * static_cast<uint64_t>(model.plan.vocab) * sizeof(float);
  return kLayersInFlight * rows * widest * size_of(model.dtype) + scratch + 2 * logits;
}

uint64_t row_bytes(const ModelDescription& model) {
  const std::vector<uint64_t> by_layer = model.plan.row_elements();
  const uint64_t elements = std::accumulate(by_layer.begin(), by_layer.end(), uint64_t{0});
  return elements * size_of(model.dtype);
}

}  // namespace octavo
