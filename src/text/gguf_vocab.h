// gguf_vocab.h - converts the tokenizer in a GGUF file to a tokenizer.json, so that all models
// share one tokenizer implementation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

// The raw, unvalidated `tokenizer.ggml.*` values of a GGUF file. An id of -1 means "not set".
struct GgufVocab {
  std::string model;  // "gpt2": byte-level BPE; "llama": SentencePiece BPE
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  int bos = -1, eos = -1, unk = -1, pad = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// Throws SetupError if the values do not form a valid tokenizer.
std::string tokenizer_json_from_gguf(const GgufVocab& vocab);

}  // namespace octavo
