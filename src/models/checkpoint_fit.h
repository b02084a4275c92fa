// checkpoint_fit.h - adapts a plan to the tensor names and forms of a checkpoint. No MLX.
#pragma once

#include <string_view>

#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Sets what the config does not say: the prefix of the language model in a multimodal checkpoint,
// and which converter wrote the file.
void fit_to_checkpoint(DecoderPlan& plan, const Checkpoint& checkpoint);

// True if the model reads the tensor; others (vision tower, multi-token prediction layers) are not
// loaded.
bool reads_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint, std::string_view name);

}  // namespace octavo
