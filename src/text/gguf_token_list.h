// gguf_token_list.h - the tokens of a GGUF vocabulary, each under a spelling of its own.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/gguf_vocab.h"

namespace octavo {

using TokenIndex = std::unordered_map<std::string_view, int>;

// Added to the spelling of a token that repeats another, once per repetition, and removed by the
// decoder. U+10FFFF is not a character, so texts do not contain it.
inline constexpr std::string_view kRepeatMark = "\xF4\x8F\xBF\xBF";

struct GgufTokenList {
  // As in llama.cpp, an empty token i is "[EMPTY_i]".
  std::vector<std::string> spellings;
  bool has_repeats = false;  // some spellings end with kRepeatMark

  // The token of a text. Views into `spellings`. Of several equal tokens, the last control or
  // user-defined one, else the last one, is the text's; the others are only decoded.
  TokenIndex index() const;
};

// Throws SetupError if a token is not UTF-8 or too long.
GgufTokenList gguf_token_list(const GgufVocab& vocab);

// True if the type marks a token that is recognised in the text before it is split into words:
// unknown, control or user-defined.
bool is_added_token(int type);
// The type of token i; normal if the file has no types.
int gguf_token_type(const GgufVocab& vocab, size_t i);

}  // namespace octavo
