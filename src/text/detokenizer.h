// detokenizer.h - converts a stream of token ids to text. One per stream, one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace octavo {

// The concatenated results of push() and finish() equal Tokenizer::decode() of all ids. An
// incomplete character is held back until its last byte arrives; bytes that cannot become a
// character are held for at most three tokens. (One case differs: a SentencePiece model that writes
// *invalid* bytes directly after valid ones. Decoding everything at once would retract characters
// that were already returned.)
//
// push() decodes a short window of tokens, never the whole history.
class Detokenizer {
 public:
  // `kept`: special tokens to show even if skip_special_tokens is set.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
              std::vector<TokenId> kept = {});

  // Returns the text that this token completes; often empty.
  std::string push(TokenId id);
  // Returns the text held back. The next push() starts a new text.
  std::string finish();

 private:
  std::string restart_from_unshown();
  void shorten(const std::string& text);
  std::string decode(size_t from) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::vector<TokenId> kept_;
  std::vector<TokenId> window_;  // the last tokens, enough to decode the next one in its context
  std::string shown_;            // the part of the window's text already returned
  size_t unshown_ = 0;           // trailing tokens whose text is not fully returned yet
};

}  // namespace octavo
