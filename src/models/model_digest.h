// model_digest.h - tells whether two machines have the same model. No MLX.
#pragma once

#include "base/sha256.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Of the config, of every tensor's name, type and shape, and of samples of every tensor's numbers:
// the beginning, the middle and the end. Reads little of the files.
Sha256Digest model_digest(const Checkpoint& checkpoint);

}  // namespace octavo
