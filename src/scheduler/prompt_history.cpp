#include "scheduler/prompt_history.h"

#include <algorithm>

namespace octavo {
namespace {

size_t common_of(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

PromptHistory::Match PromptHistory::closest(std::span<const TokenId> prompt,
                                            const Owner& owner) const {
  const Text* best = nullptr;
  size_t most = 0;
  for (const Text& text : texts_) {
    if (text.owner != owner) continue;
    const size_t common = common_of(text.tokens, prompt);
    if (best != nullptr && common < most) continue;
    best = &text;
    most = common;
  }
  if (best == nullptr) return {};
  return {.common = static_cast<int>(most), .ended = most == best->tokens.size(), .known = true};
}

void PromptHistory::remember(std::span<const TokenId> text, const Owner& owner) {
  if (text.size() > kMostTokens) return;
  Text added{owner, {text.begin(), text.end()}};
  const auto same = std::ranges::find_if(texts_, [&](const Text& old) {
    return old.owner == owner &&
           common_of(old.tokens, text) == std::min(old.tokens.size(), text.size());
  });
  if (same != texts_.end()) {
    tokens_ -= same->tokens.size();
    if (same->tokens.size() > added.tokens.size()) added = std::move(*same);
    texts_.erase(same);
  }
  tokens_ += added.tokens.size();
  texts_.push_back(std::move(added));
  while (texts_.size() > kMostTexts || tokens_ > kMostTokens) {
    tokens_ -= texts_.front().tokens.size();
    texts_.pop_front();
  }
}

}  // namespace octavo
