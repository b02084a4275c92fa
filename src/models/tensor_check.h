// tensor_check.h - whether a checkpoint has the tensors its config asks for. Shows no MLX.
#pragma once

#include <string>
#include <vector>

#include "models/model_description.h"

namespace octavo {

// Each tensor that is missing, or of another shape or type than the plan has it; empty: it can be
// loaded. Reads headers and small vectors only.
std::vector<std::string> tensor_problems(const Checkpoint& checkpoint,
                                         const ModelDescription& model);

}  // namespace octavo
