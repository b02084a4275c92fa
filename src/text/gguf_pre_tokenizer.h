// gguf_pre_tokenizer.h - how each byte-level BPE family that GGUF files name cuts text into words.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace octavo {

struct GgufPreTokenizer {
  nlohmann::ordered_json stages;  // the "pretokenizers" of a tokenizer.json Sequence
  bool normalize_nfc = false;
  bool ignore_merges = false;  // a word that is a token is taken whole, whatever the merges say
  bool add_bos = false;        // when the file does not say
};

// By the file's `tokenizer.ggml.pre`; an empty name is "default". Throws SetupError for a name that
// is not known.
GgufPreTokenizer gguf_pre_tokenizer(std::string_view name);

}  // namespace octavo
