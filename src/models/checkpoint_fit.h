// checkpoint_fit.h - adapts a plan to the tensor names and forms of a checkpoint. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"
#include "models/stage_range.h"

namespace octavo {

// Sets what the config does not say: the prefix of the language model in a multimodal checkpoint,
// and which converter wrote the file.
void fit_to_checkpoint(DecoderPlan& plan, const Checkpoint& checkpoint);

// True if the model reads the tensor; others (vision tower, multi-token prediction layers) are not
// loaded.
bool reads_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint, std::string_view name);

enum class TensorRole : uint8_t {
  kEmbeddings,  // of tokens
  kLayerInput,  // PerLayerInputPlan's part that the first layers' machine has
  kLayer,
  kOutput,  // the final norm and the output matrix
  kMtp,
};

struct TensorPlace {
  TensorRole role;
  size_t layer = 0;  // with kLayer
};

// What part of the model reads the tensor, if any does (reads_tensor).
TensorPlace place_of_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint,
                            std::string_view name);

// Bytes of the tensors that a stage reads.
uint64_t stage_file_bytes(const Checkpoint& checkpoint, const DecoderPlan& plan,
                          const StageRange& stage);

}  // namespace octavo
