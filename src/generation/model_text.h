// model_text.h - the text side of a model: its tokenizer and chat template.
#pragma once

#include <memory>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: the model has none
};

}  // namespace octavo
