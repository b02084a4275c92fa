// tensor_prefix.h - where in a checkpoint the language model stands. No MLX.
#pragma once

#include "models/decoder_plan.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Checkpoints with more than a language model, and converters, put different names in front of its
// tensors. Sets plan.prefix and plan.head_name to those that this one has; leaves them as they are
// when none is found, so that the loader can say which tensor is missing.
void find_tensor_prefix(const Checkpoint& checkpoint, DecoderPlan& plan);

// Whether the tensor belongs to the language model; the others (vision, audio) are not loaded.
bool is_of_language_model(const TensorView& tensor, const DecoderPlan& plan);

}  // namespace octavo
