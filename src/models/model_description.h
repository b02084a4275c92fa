// model_description.h - describes a checkpoint without loading its weights. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config_keys.h"
#include "models/decoder_plan.h"
#include "models/find_pooling.h"
#include "models/format/checkpoint.h"
#include "models/stage_range.h"
#include "models/vision/vision_plan.h"

namespace octavo {

// Memory of a model's weights, packed for the kernels.
struct WeightBytes {
  uint64_t embeddings = 0;   // of tokens
  uint64_t layer_input = 0;  // of PerLayerRows
  std::vector<uint64_t> layers = {};
  uint64_t output = 0;  // the final norm and the output matrix
  uint64_t mtp = 0;

  uint64_t of_stage(const DecoderPlan& plan, const StageRange& stage) const;
};

struct ModelDescription {
  DecoderPlan plan;
  DType dtype = DType::kBFloat16;  // compute and KV
  int longest_context = 0;         // in tokens, with the config's rope scaling
  std::vector<int> stop_token_ids;
  std::vector<int> suppressed_token_ids = {};  // never generated
  uint64_t parameters = 0;                     // regardless of the storage format
  uint64_t weights_bytes = 0;                  // in memory, packed for the kernels
  WeightBytes weights = {};                    // the same by part
  uint64_t file_bytes = 0;
  std::string
      quantization;       // of a quantised safetensors checkpoint: "affine 4-bit in groups of 64"
  std::string container;  // "GGUF" or "safetensors"
  std::optional<PoolingPlan> pooling = {};  // unset: the model generates tokens
  // Unset: the model takes no images; vision_absent then says why, as in "the checkpoint has no vision
  // tower".
  std::optional<VisionPlan> vision = {};
  std::string vision_absent = {};
  // > 1: heads and weights are those of one of so many ranks, which divide the outputs of matrices.
  int ranks = 1;
};

// Reads the config and the tensors' headers. `dtype` overrides the checkpoint's own. With `pooling`
// the model has no logits. With `mtp` its multi-token prediction layer is part of the model.
// `processor_kwargs`: as for find_vision(). Throws SetupError if the model is not supported.
ModelDescription describe_model(const Checkpoint& checkpoint, std::optional<DType> dtype,
                                std::optional<PoolingPlan> pooling = std::nullopt,
                                UnknownKeys unknown = UnknownKeys::kWarn, bool mtp = false,
                                std::string_view processor_kwargs = {});

// Rows multiplied by the output matrix at once; more are processed in slices.
inline constexpr int kLogitRows = 64;

// MLX allocates results when it queues operations, before the kernels run. The engine limits its memory
// to half of what these layers take; MLX then waits for about ten operations at a time, less than a
// layer.
inline constexpr uint64_t kLayersInFlight = 4;

// Peak memory of one step of `tokens` rows of which `logit_rows` need logits, from shapes alone. Of
// the whole model, or of a stage.
uint64_t step_bytes(const ModelDescription& model, int tokens, int logit_rows,
                    std::optional<StageRange> stage = std::nullopt);
// Intermediate bytes per row over all layers, which a step queued at once holds.
uint64_t row_bytes(const ModelDescription& model, std::optional<StageRange> stage = std::nullopt);

}  // namespace octavo
