#include "text/detokenizer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "text/utf8.h"

namespace octavo {
namespace {

// At least the three preceding tokens that can share a character with the next one.
constexpr size_t kContextTokens = 8;
constexpr size_t kWindowTokens = 32;     // at this size the window is cut to kContextTokens
constexpr size_t kMaxPartialTokens = 3;  // the first bytes of a character, one token each

// `text` without up to three trailing U+FFFD, which the next token may turn into a character.
std::string_view certain_part(std::string_view text) {
  for (size_t i = 0; i < kMaxPartialTokens && text.ends_with(kReplacementCharacter); ++i) {
    text.remove_suffix(kReplacementCharacter.size());
  }
  return text;
}

}  // namespace

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
                         std::vector<TokenId> kept)
    : tokenizer_(std::move(tokenizer)),
      skip_special_tokens_(skip_special_tokens),
      kept_(std::move(kept)) {}

std::string Detokenizer::decode(size_t from) const {
  // The window holds only those special tokens that are shown.
  return tokenizer_->decode(std::span(window_).subspan(from),
                            skip_special_tokens_ && kept_.empty());
}

std::string Detokenizer::push(TokenId id) {
  // A token without text must not be the window's only context, or the next token would decode as
  // the start of the text.
  if (id < 0 || id >= tokenizer_->vocab_size()) return "";
  if (skip_special_tokens_ && tokenizer_->is_special(id) && std::ranges::count(kept_, id) == 0)
    return "";

  window_.push_back(id);
  ++unshown_;
  const std::string text = decode(0);
  if (!text.starts_with(shown_)) {
    return unshown_ > kMaxPartialTokens ? restart_from_unshown() : std::string();
  }
  const std::string_view certain = certain_part(text);
  std::string fresh;
  if (certain.size() > shown_.size()) {
    fresh = certain.substr(shown_.size());
    shown_ = certain;
  }
  if (shown_.size() == text.size()) unshown_ = 0;
  if (window_.size() >= kWindowTokens) shorten(text);
  return fresh;
}

// The window's text no longer starts with the returned text, and no pending character explains it.
std::string Detokenizer::restart_from_unshown() {
  window_.erase(window_.begin(), window_.end() - static_cast<std::ptrdiff_t>(unshown_));
  const std::string text = decode(0);
  shown_ = certain_part(text);
  if (shown_.size() == text.size()) unshown_ = 0;
  return shown_;
}

// Keeps the last few tokens, if possible from where they decode to a suffix of the window's text.
void Detokenizer::shorten(const std::string& text) {
  const size_t latest = window_.size() - kContextTokens;
  size_t from = latest;
  while (from > latest - kMaxPartialTokens && !text.ends_with(decode(from))) --from;
  if (!text.ends_with(decode(from))) from = latest;

  const std::string tail = decode(from);
  const size_t held = std::min(tail.size(), text.size() - shown_.size());
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(from));
  shown_ = tail.substr(0, tail.size() - held);
  unshown_ = std::min(unshown_, window_.size());
}

std::string Detokenizer::finish() {
  const std::string text = decode(0);
  std::string rest =
      text.starts_with(shown_) ? text.substr(shown_.size()) : decode(window_.size() - unshown_);
  window_.clear();
  shown_.clear();
  unshown_ = 0;
  return rest;
}

}  // namespace octavo
