// gguf_stop_tokens.h - the tokens that end an output, from the metadata of a GGUF file. No MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "models/format/gguf_metadata.h"

namespace octavo {

// Tokens whose spelling marks the end of a turn, an answer or a document ("<|im_end|>",
// "<end_of_turn>", ...), as in llama.cpp: most files name one end token and leave out the others.
// "</s>", which is also a tag of HTML, counts only if it is a control token.
std::vector<uint32_t> named_stop_tokens(const Gguf& gguf);

// The ids of eos, eot and eom, those of eos_token_ids (written by Ollama) and the named ones. May
// contain ids outside the vocabulary.
std::vector<uint32_t> gguf_stop_tokens(const Gguf& gguf);

}  // namespace octavo
