// gguf_pre_tokenizer.h - the pre-tokenizer of each BPE family named in GGUF files.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace octavo {

struct GgufPreTokenizer {
  nlohmann::ordered_json stages = nullptr;  // the "pretokenizers" of a tokenizer.json Sequence
  bool normalize_nfc = false;
  bool ignore_merges = false;  // a word that is itself a token is not split, regardless of merges
  bool add_bos = false;        // default if the file does not specify it
  bool needs_bos = false;      // BOS is added even if the file says otherwise
  // Merges apply to the whole text as UTF-8, with U+2581 for spaces and <0xXX> for the bytes of
  // characters that are not tokens; there are no stages. Otherwise bytes are characters (GPT-2).
  bool is_raw = false;
};

// `name` is the file's `tokenizer.ggml.pre`; empty means "default". Throws SetupError if it is
// unknown: another family's rules would give other tokens without any error.
GgufPreTokenizer gguf_pre_tokenizer(std::string_view name);
// All supported names, sorted.
std::vector<std::string_view> gguf_pre_tokenizer_names();

}  // namespace octavo
