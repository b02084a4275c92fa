// gguf_tokenizer_keys.h - accounts for every `tokenizer.*` key of a GGUF file. No MLX.
#pragma once

#include <string>
#include <vector>

#include "models/format/gguf_metadata.h"

namespace octavo {

// Returns the `tokenizer.*` keys that are neither read nor known to be irrelevant. Throws SetupError
// if a key asks for a change of the text that octavo does not make, which would give other tokens.
std::vector<std::string> unknown_tokenizer_keys(const Gguf& gguf);

}  // namespace octavo
