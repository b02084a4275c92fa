// gguf_pre_tokenizer.h - the pre-tokenizer of each byte-level BPE family named in GGUF files.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace octavo {

struct GgufPreTokenizer {
  nlohmann::ordered_json stages;  // the "pretokenizers" of a tokenizer.json Sequence
  bool normalize_nfc = false;
  bool ignore_merges = false;  // a word that is itself a token is not split, regardless of merges
  bool add_bos = false;        // default if the file does not specify it
};

// `name` is the file's `tokenizer.ggml.pre`; empty means "default". Throws SetupError if it is
// unknown.
GgufPreTokenizer gguf_pre_tokenizer(std::string_view name);

}  // namespace octavo
