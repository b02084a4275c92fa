// suppressed_tokens.h - the tokens that a model must not generate. No MLX.
#pragma once

#include <vector>

#include "models/format/checkpoint.h"

namespace octavo {

// `tokenizer.ggml.suppress_tokens` of a GGUF file, or `suppress_tokens` of generation_config.json:
// for example the placeholders of images. Sorted; ids outside the vocabulary of `vocab` tokens are
// left out. Throws SetupError if there are too many, or if no token would be left.
std::vector<int> suppressed_token_ids(const Checkpoint& checkpoint, int vocab);

}  // namespace octavo
