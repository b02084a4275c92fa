// checkpoint_fit.h - the names and forms a checkpoint's tensors really have. No MLX.
#pragma once

#include <string_view>

#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"

namespace octavo {

// A plan follows from a config, which does not say under which prefix a model of several parts
// keeps its language model, nor who wrote the file.
void fit_to_checkpoint(DecoderPlan& plan, const Checkpoint& checkpoint);

// Whether the model reads a tensor; others (a vision tower, layers that guess ahead) stay on disk.
bool reads_tensor(const DecoderPlan& plan, const Checkpoint& checkpoint, std::string_view name);

}  // namespace octavo
