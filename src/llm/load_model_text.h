// load_model_text.h - reads the tokenizer and the chat template of a checkpoint.
#pragma once

#include <filesystem>

#include "generation/model_text.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Reads a GGUF's metadata, or tokenizer.json and the files next to it in the model's folder. Throws
// SetupError if there is no tokenizer.
ModelText load_model_text(const Checkpoint& checkpoint);

// Replaces the chat template by the one in `file`. Throws SetupError that names --chat-template.
void use_chat_template(ModelText& text, const std::filesystem::path& file,
                       const Checkpoint& checkpoint);

}  // namespace octavo
