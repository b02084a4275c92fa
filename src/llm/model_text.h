// model_text.h - the text side of a checkpoint: its tokenizer and chat template.
#pragma once

#include <memory>

#include "models/format/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: the model has none
};

// From a GGUF's metadata, or tokenizer.json and its neighbours in the model's folder. Throws
// SetupError when there is no tokenizer.
ModelText load_model_text(const Checkpoint& checkpoint);

}  // namespace octavo
