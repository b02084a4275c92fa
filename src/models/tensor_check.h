// tensor_check.h - checks that a checkpoint has the tensors its config requires. Shows no MLX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model_description.h"
#include "models/output_share.h"

namespace octavo {

// One message per tensor that is missing, has the wrong shape or type, or is unknown in a GGUF file;
// empty if the model can be loaded. Reads only headers and small vectors.
std::vector<std::string> tensor_problems(const Checkpoint& checkpoint,
                                         const ModelDescription& model);

// Memory of the weights of one rank, packed for the kernels. Allocates and frees one layer at a time.
uint64_t share_bytes(const Checkpoint& checkpoint, const ModelDescription& model,
                     const OutputShare& share);

// Throws SetupError that lists a few of the problems.
void check_tensors(const Checkpoint& checkpoint, const ModelDescription& model);

}  // namespace octavo
