// gguf_config.h - translates the metadata of a GGUF file to Hugging Face's keys, so that a family is
// written once. No MLX.
#pragma once

#include "models/config.h"

namespace octavo {

// Throws SetupError if the architecture is not supported, or if the file has a key of its
// architecture that is neither read nor known not to affect the output.
Config config_from_gguf(const Checkpoint& checkpoint);

}  // namespace octavo
