// gguf_vocab.h - the tokenizer a GGUF file carries, written as the tokenizer.json it came from, so
// that there is one path from text to ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

// The `tokenizer.ggml.*` values of a GGUF file as they stand there; none is trusted. -1 is "not
// given".
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

// Throws SetupError when the values do not make a tokenizer.
std::string tokenizer_json_from_gguf(const GgufVocab& vocab);

}  // namespace octavo
