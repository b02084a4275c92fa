// gguf_vocab.h - converts the tokenizer in a GGUF file to a tokenizer.json, so that all models
// share one tokenizer implementation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

// Values of `tokenizer.ggml.token_type`.
inline constexpr int kGgufNormalToken = 1;
inline constexpr int kGgufUnknownToken = 2;
inline constexpr int kGgufControlToken = 3;
inline constexpr int kGgufUserDefinedToken = 4;
inline constexpr int kGgufUnusedToken = 5;
inline constexpr int kGgufByteToken = 6;

// The raw, unvalidated `tokenizer.ggml.*` values of a GGUF file. An id of -1 means "not set".
struct GgufVocab {
  // "gpt2": BPE by `pre`; "gemma4": BPE on UTF-8; "llama": SentencePiece BPE; "bert": WordPiece; "t5":
  // SentencePiece Unigram
  std::string model;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;  // empty: all tokens are normal
  std::vector<std::string> merges;
  int bos = -1, eos = -1, unk = -1, pad = -1, sep = -1, cls = -1;
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix;
  std::optional<bool> lowercase, strip_accents;  // "bert"
  std::optional<bool> remove_extra_whitespaces;  // "t5"
  std::string precompiled_charsmap;              // "t5": SentencePiece's normalizer, binary
  // Spaces after control and user-defined tokens are dropped, except after <s>, <unk> and
  // <|endoftext|>. Phi-3 does this; its files do not say so.
  bool strips_after_added = false;
};

// Throws SetupError if the values do not form a valid tokenizer.
std::string tokenizer_json_from_gguf(const GgufVocab& vocab);

}  // namespace octavo
