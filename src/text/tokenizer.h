// tokenizer.h - converts text to token ids and back. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"

struct octavo_tokenizer;

namespace octavo {

struct TokenizerOptions {
  // Limit per text to encode; a longer text is a RequestError. Encoding takes 16 to 350 bytes of
  // memory per byte of text, the most if every character is a word of its own (digits).
  size_t max_text_bytes = 8u << 20;
};

class Tokenizer {
 public:
  // Both throw SetupError if `json` (a Hugging Face tokenizer.json) cannot be used. Its
  // truncation and padding settings are ignored.
  static std::shared_ptr<const Tokenizer> from_json(std::string_view json,
                                                    TokenizerOptions options = {});
  static std::shared_ptr<const Tokenizer> from_file(const std::filesystem::path& path,
                                                    TokenizerOptions options = {});
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Invalid UTF-8 is read as U+FFFD. Throws RequestError if the text is too long or cannot be
  // expressed in the vocabulary.
  std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const;
  // Encodes the text without its markers; a special token with a marker inside is encoded as text
  // (SpecialTokenMarks). 0: no marker, as encode().
  std::vector<TokenId> encode_marked(std::string_view text, char32_t marker,
                                     bool add_special_tokens) const;
  // Two texts with the special tokens that the tokenizer adds to a pair.
  struct Pair {
    std::vector<TokenId> tokens = {};
    int second_text = 0;  // index of the first token of type 1; 0: all are of type 0
  };
  // If `max_tokens` is not 0 and the pair has more tokens, the longer text loses tokens at its end
  // until the pair fits or the texts are equally long, then both do ("longest first"). Throws as
  // encode(), and if the special tokens alone are more.
  Pair encode_pair(std::string_view first, std::string_view second, size_t max_tokens = 0) const;
  // True if the text has more than twice `max_tokens` tokens, counted in pieces of 64 KiB. Takes
  // little memory and stops at that count. For use before encode(), which takes the time and
  // memory of all tokens. WordPiece and Unigram may give a text of much longer unknown words fewer
  // tokens than its pieces have, so such a text can be reported too.
  bool exceeds(std::string_view text, size_t max_tokens) const;

  // Always valid UTF-8. Ids outside the vocabulary contribute nothing.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  std::optional<TokenId> token_id(std::string_view token) const;
  // The token as the vocabulary spells it; empty for an id outside the vocabulary.
  std::string token_text(TokenId id) const;
  // One past the largest id, added tokens included.
  int vocab_size() const { return vocab_size_; }
  bool is_special(TokenId id) const;
  // The spellings of all special tokens.
  std::vector<std::string> special_tokens() const;
  // A tokenizer.json that gives the same tokenizer.
  std::string json() const;
  // For other functions of the Rust library that take a tokenizer.
  const octavo_tokenizer* handle() const { return handle_; }

 private:
  Tokenizer(octavo_tokenizer* handle, TokenizerOptions options);

  // As UTF-8. Throws RequestError if the text is too long.
  std::string checked_text(std::string_view text) const;

  octavo_tokenizer* handle_;  // owned
  TokenizerOptions options_;
  int vocab_size_;
};

}  // namespace octavo
