#include "models/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/expert_mlp.h"
#include "kernels/cpu/linear.h"
#include "kernels/metal/attention_grid.h"
#include "kernels/runtime/device.h"
#include "kernels/types/state_geometry.h"
#include "kernels/weights/packed_weight.h"
#include "models/checkpoint_fit.h"
#include "models/config.h"
#include "models/families/families.h"
#include "models/find_classifier.h"
#include "models/find_mtp.h"
#include "models/quantized/quantized_matrix.h"
#include "models/suppressed_tokens.h"
#include "models/vision/find_vision.h"
#include "models/weight_view.h"

namespace octavo {
namespace {

// GGUF files do not record the training type, so bfloat16 is used. Otherwise it is in the config,
// or is the type of the (never quantised) final norm.
DType checkpoint_dtype(const Checkpoint& checkpoint, const Config& config,
                       const DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return DType::kBFloat16;
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (config.has(key)) return parse_dtype(config.text(key), key);
  }
  const std::string& name = plan.encoder ? plan.encoder->norm : plan.final_norm;
  const TensorView* norm = checkpoint.find(renamed(plan.tensor(name + ".weight"), plan.renames));
  if (norm != nullptr && norm->type == TensorType::F32) return DType::kFloat32;
  if (norm != nullptr && norm->type == TensorType::F16) return DType::kFloat16;
  return DType::kBFloat16;
}

// The default quantisation of a checkpoint, for display. The loader uses the shapes of the tensors.
std::string quantization_of(const Config& config, const DecoderPlan& plan) {
  if (plan.quantization.method != QuantMethod::kNone) return plan.quantization.description;
  const auto quantization = config.object("quantization");
  if (!quantization) return "";
  return fmt::format("{} {}-bit in groups of {}", quantization->text_or("mode", "affine"),
                     quantization->integer_or("bits", 4),
                     quantization->integer_or("group_size", 64));
}

// A vector that GGUF files have as a matrix: Mamba-2's A, D and norm.
bool is_vector(const TensorView& tensor) {
  return tensor.name.ends_with("norm.weight") || tensor.name.ends_with(".ssm_a") ||
         tensor.name.ends_with(".ssm_d");
}

// Memory of a tensor: matrices are packed in strips of 16 rows and units of 64 inputs
// (kernels/weights/packed_weight.h), padded with zeros. Experts may be stacked on leading axes. The
// inputs of an MLX-quantised matrix are not known here, so up to half a unit per row is not counted.
uint64_t packed_size(const TensorView& tensor) {
  if (tensor.shape.size() < 2 || tensor.bytes.empty() || is_vector(tensor))
    return tensor.bytes.size();
  // gpt-oss's blocks [experts, rows, groups, 16] are rows of groups * 16 bytes.
  const bool blocks = tensor.type == TensorType::U8 && tensor.shape.size() == 4;
  const size_t at = tensor.shape.size() - (blocks ? 3 : 2);
  uint64_t matrices = 1;
  for (size_t i = 0; i < at; ++i) matrices *= static_cast<uint64_t>(tensor.shape[i]);
  const auto rows = static_cast<uint64_t>(tensor.shape[at]);
  const auto cols = static_cast<uint64_t>(tensor.shape.back());
  constexpr uint64_t kMostTaps = kLargestConvRows + 1;  // a convolution is not a stack of matrices
  const bool convolution = at > 0 || tensor.name.ends_with("conv1d.weight") ||
                           tensor.name.ends_with("conv.weight");  // [channels, taps] in GGUF files
  if (convolution && (rows <= kMostTaps || cols <= kMostTaps)) return tensor.bytes.size();
  if (const auto format = gguf_format(tensor.type)) {
    const WeightView matrix{
        .format = *format, .rows = tensor.shape[at], .cols = tensor.shape.back()};
    return matrices * static_cast<uint64_t>(packed_layout(matrix).bytes());
  }
  uint64_t row_bytes = tensor.bytes.size() / (matrices * rows);
  // Scales and biases of a quantised matrix have one entry per group of inputs and are not padded.
  const bool grouped = tensor.name.ends_with(".scales") || tensor.name.ends_with(".biases");
  const bool dense =
      !grouped && (tensor.type == TensorType::F32 || tensor.type == TensorType::F16 ||
                   tensor.type == TensorType::BF16);
  if (blocks) row_bytes = (row_bytes + kUnitCols / 2 - 1) / (kUnitCols / 2) * (kUnitCols / 2);
  if (dense) row_bytes = row_bytes / cols * ((cols + kUnitCols - 1) / kUnitCols * kUnitCols);
  return matrices * row_bytes * ((rows + kStripRows - 1) / kStripRows * kStripRows);
}

// Largest scratch memory of the kernels of one step.
uint64_t scratch_bytes(const DecoderPlan& plan, int tokens) {
  const int threads = compute_pool().threads();
  int64_t most =
      cpu::linear_scratch_bytes(tokens, static_cast<int64_t>(plan.widest_input()), threads);
  for (const auto& layer : plan.layers) {
    const MoePlan* moe = layer.moe();
    if (moe == nullptr) continue;
    const cpu::ExpertMlpShape shape{.experts = moe->choice.experts,
                                    .top_k = moe->choice.top_k,
                                    .hidden = plan.hidden,
                                    .inner = moe->intermediate};
    most = std::max(most, cpu::expert_mlp_scratch_bytes(shape, tokens, threads));
  }
  return static_cast<uint64_t>(most);
}

// Limits the context and drops the output matrix of a pooling model; adds the head of one that scores.
void follow(const PoolingPlan& pooling, const Checkpoint& checkpoint, const Config& config,
            DecoderPlan& plan) {
  if (pooling.dimensions.value_or(0) > plan.hidden)
    throw SetupError(fmt::format("--pooler-config: dimensions is {}; vectors have {}",
                                 *pooling.dimensions, plan.hidden));
  plan.max_context = std::min(plan.max_context, pooling.max_tokens.value_or(plan.max_context));
  if (pooling.labels > 0) plan.score = plan_score_head(checkpoint, config, plan, pooling);
  plan.head_name.clear();
}

void refuse_generation(const Config& config, const DecoderPlan& plan) {
  if (!plan.encoder) return;
  throw SetupError(
      fmt::format("{}: a model of type {} is an encoder, which embeds or scores texts and "
                  "generates none; use octavo serve without --runner generate",
                  config.origin(), plan.family));
}

// As vLLM: yarn and similar scalings extend the original context by their factor; llama3 and longrope
// configs already have the extended one.
int longest_context(const Config& config, int context) {
  std::optional<Config> scaling = config.object("rope_parameters");
  if (!scaling) scaling = config.object("rope_scaling");
  if (!scaling) return context;
  const std::string type = scaling->text_or("rope_type", scaling->text_or("type", "default"));
  if (type != "yarn" && type != "linear" && type != "dynamic") return context;
  const double original =
      scaling->number_or("original_max_position_embeddings", static_cast<double>(context));
  const double longest = original * scaling->number_or("factor", 1);
  return longest > context ? static_cast<int>(std::min(longest, 1e9)) : context;
}

// The output matrix of a model that scores by the logits of two tokens, of which only two rows are loaded.
bool has_two_rows_in_use(const DecoderPlan& plan, std::string_view name) {
  return plan.score && !plan.score->rows.empty() && !plan.tied_embeddings &&
         name.starts_with(plan.score->out + ".");
}

WeightBytes weight_bytes_of(const Checkpoint& checkpoint, const DecoderPlan& plan,
                            const std::optional<VisionPlan>& vision, DType dtype) {
  WeightBytes weights;
  const auto decoded = [&](const LayerPlan& layer) {
    const auto* mla = std::get_if<MlaPlan>(&layer.mixer);
    return mla != nullptr ? mla->decoded_bytes(dtype) : 0;
  };
  for (const LayerPlan& layer : plan.layers) weights.layers.push_back(decoded(layer));
  if (plan.mtp) weights.mtp = decoded(plan.mtp->layer);
  for (const auto& tensor : checkpoint.tensors()) {
    if (!reads_tensor(plan, checkpoint, tensor.name)) continue;
    if (vision && vision->shape.owns(tensor.name)) continue;
    if (has_two_rows_in_use(plan, tensor.name)) continue;
    const auto quantized = quantized_bytes(plan.quantization, checkpoint, tensor);
    const TensorPlace place = place_of_tensor(plan, checkpoint, tensor.name);
    uint64_t& part = place.role == TensorRole::kEmbeddings   ? weights.embeddings
                     : place.role == TensorRole::kLayerInput ? weights.layer_input
                     : place.role == TensorRole::kLayer      ? weights.layers[place.layer]
                     : place.role == TensorRole::kMtp        ? weights.mtp
                                                             : weights.output;
    part += quantized ? *quantized : packed_size(tensor);
  }
  return weights;
}

uint64_t sum_of(const WeightBytes& weights) {
  return std::accumulate(weights.layers.begin(), weights.layers.end(),
                         weights.embeddings + weights.layer_input + weights.output + weights.mtp);
}

// Of the stage's layers, and what follows the layers in DecoderPlan::row_elements.
std::vector<uint64_t> row_elements_of(const DecoderPlan& plan, std::optional<StageRange> stage) {
  std::vector<uint64_t> elements = plan.row_elements();
  if (!stage) return elements;
  elements.erase(elements.begin() + stage->last,
                 elements.begin() + static_cast<ptrdiff_t>(plan.layers.size()));
  elements.erase(elements.begin(), elements.begin() + stage->first);
  return elements;
}

}  // namespace

ModelDescription describe_model(const Checkpoint& checkpoint, std::optional<DType> dtype,
                                std::optional<PoolingPlan> pooling, UnknownKeys unknown, bool mtp,
                                std::string_view processor_kwargs) {
  const Config config = read_config(checkpoint);
  ModelDescription description;
  description.plan =
      checkpoint.gguf() != nullptr ? plan_model(config) : plan_config_file(config, unknown);
  fit_to_checkpoint(description.plan, checkpoint);
  description.longest_context = longest_context(config, description.plan.max_context);
  if (mtp) description.plan.mtp = find_mtp(config, description.plan, checkpoint);
  if (pooling) {
    follow(*pooling, checkpoint, config, description.plan);
  } else {
    refuse_generation(config, description.plan);
  }
  description.pooling = std::move(pooling);
  description.dtype = dtype.value_or(checkpoint_dtype(checkpoint, config, description.plan));
  description.stop_token_ids = stop_token_ids(checkpoint, config);
  // Ids that the model cannot generate; they would be read past the end of the logits.
  std::erase_if(description.stop_token_ids, [&](int id) { return id >= description.plan.vocab; });
  description.suppressed_token_ids = suppressed_token_ids(checkpoint, description.plan.vocab);
  description.parameters = description.plan.parameters();
  description.file_bytes = checkpoint.file_bytes();
  description.quantization = quantization_of(config, description.plan);
  description.container = checkpoint.gguf() != nullptr ? "GGUF" : "safetensors";
  FoundVision vision = find_vision(checkpoint, description.plan, processor_kwargs);
  description.vision = std::move(vision.plan);
  description.vision_absent = std::move(vision.absent);
  description.weights =
      weight_bytes_of(checkpoint, description.plan, description.vision, description.dtype);
  description.weights_bytes = sum_of(description.weights);
  return description;
}

uint64_t WeightBytes::of_stage(const DecoderPlan& plan, const StageRange& stage) const {
  uint64_t bytes = std::accumulate(layers.begin() + stage.first, layers.begin() + stage.last,
                                   stage.has_embeddings(plan) ? embeddings : uint64_t{0});
  if (stage.embeds()) bytes += layer_input;
  if (stage.draws(plan)) bytes += output + mtp;
  return bytes;
}

uint64_t step_bytes(const ModelDescription& model, int tokens, int logit_rows,
                    std::optional<StageRange> stage) {
  const std::vector<uint64_t> elements = row_elements_of(model.plan, stage);
  // Gathered rows besides the parts of this rank.
  const uint64_t copies = model.ranks > 1 ? 2 : 1;
  const uint64_t widest = copies * *std::ranges::max_element(elements);
  const auto rows = static_cast<uint64_t>(tokens);
  if (stage && !stage->draws(model.plan)) logit_rows = 0;
  const uint64_t logits =
      static_cast<uint64_t>(logit_rows) * static_cast<uint64_t>(model.plan.vocab) * sizeof(float);
  const bool on_gpu = device_facts().kind == DeviceKind::kMetal;
  // On Metal, rules write changed copies of the logits.
  const uint64_t all_logits = ((model.plan.mtp ? 4 : 2) + (on_gpu ? 1 : 0) + copies - 1) * logits;
  const uint64_t results = kLayersInFlight * rows * widest;
  // Intermediate results between Metal kernels: at most as many float32 values, and the partial
  // results of attention.
  const uint64_t scratch = on_gpu ? results * sizeof(float) + metal::kMostPartialBytes
                                  : scratch_bytes(model.plan, tokens);
  return results * size_of(model.dtype) + scratch + all_logits;
}

uint64_t row_bytes(const ModelDescription& model, std::optional<StageRange> stage) {
  const std::vector<uint64_t> by_layer = row_elements_of(model.plan, stage);
  const uint64_t elements = std::accumulate(by_layer.begin(), by_layer.end(), uint64_t{0});
  return (model.ranks > 1 ? 2 : 1) * elements * size_of(model.dtype);
}

}  // namespace octavo
