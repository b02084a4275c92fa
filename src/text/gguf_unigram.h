// gguf_unigram.h - SentencePiece's Unigram tokenizer, as XLM-RoBERTa has it, from a GGUF vocabulary.
#pragma once

#include <nlohmann/json.hpp>

#include "text/gguf_tokenizer_json.h"

namespace octavo {

// Throws SetupError.
nlohmann::ordered_json unigram_tokenizer(const CheckedVocab& tokens);

}  // namespace octavo
