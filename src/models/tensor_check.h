// tensor_check.h - checks that a checkpoint has the tensors its config requires. Shows no MLX.
#pragma once

#include <string>
#include <vector>

#include "models/model_description.h"

namespace octavo {

// One message per tensor that is missing or has the wrong shape or type; empty if the model can be
// loaded. Reads only headers and small vectors.
std::vector<std::string> tensor_problems(const Checkpoint& checkpoint,
                                         const ModelDescription& model);

}  // namespace octavo
