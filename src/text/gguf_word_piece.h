// gguf_word_piece.h - BERT's tokenizer from a GGUF vocabulary.
#pragma once

#include <nlohmann/json.hpp>

#include "text/gguf_vocab.h"

namespace octavo {

// GGUF files mark the first piece of a word with U+2581 and leave the others plain; WordPiece marks the
// others with "##". The vocabulary's sizes are valid. Throws SetupError.
nlohmann::ordered_json word_piece_tokenizer(const GgufVocab& vocab);

}  // namespace octavo
