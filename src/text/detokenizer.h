// detokenizer.h - token ids to text, one at a time, for a stream. One per stream, one thread at a
// time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace octavo {

// What push() and finish() return, put together, is Tokenizer::decode() of all the ids. A character
// whose bytes are still arriving is held back; bytes that cannot become a character are not held
// for more than three tokens. (One case differs: a SentencePiece model that writes *invalid* bytes
// right after valid ones. Decoding the whole would take back characters that were already sent.)
//
// A push decodes a short window of tokens, never the whole history.
class Detokenizer {
 public:
  // `kept`: special tokens that are shown all the same.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
              std::vector<TokenId> kept = {});

  // The text that became certain with this token; often empty.
  std::string push(TokenId id);
  // What was held back. The next push() starts a new text.
  std::string finish();

 private:
  std::string restart_from_unshown();
  void shorten(const std::string& text);
  std::string decode(size_t from) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::vector<TokenId> kept_;
  std::vector<TokenId> window_;  // the last tokens, enough to decode the next one in its context
  std::string shown_;            // the part of the window's text that was returned
  size_t unshown_ = 0;           // tokens at the window's end that have given no certain text yet
};

}  // namespace octavo
