#include "kernels/types/logit_bans.h"

#include <algorithm>
#include <span>

namespace octavo {
namespace {

// The answer as far as it is known: without the pending token.
struct KnownAnswer {
  std::span<const TokenId> logged;
  std::span<const TokenId> assumed;  // the tokens after it

  size_t size() const { return logged.size() + assumed.size(); }

  bool ends_with(std::span<const TokenId> tokens) const {
    if (tokens.size() > size()) return false;
    const size_t in_assumed = std::min(tokens.size(), assumed.size());
    if (!std::ranges::equal(tokens.last(in_assumed), assumed.last(in_assumed))) return false;
    tokens = tokens.first(tokens.size() - in_assumed);
    return std::ranges::equal(tokens, logged.last(tokens.size()));
  }
};

KnownAnswer answer_of(const RowHistory& history) {
  KnownAnswer answer;
  if (history.log != nullptr)
    answer.logged = history.log->first(history.known).subspan(static_cast<size_t>(history.prompt));
  if (history.assumed_count > 0)
    answer.assumed = std::span(*history.assumed).first(static_cast<size_t>(history.assumed_count));
  return answer;
}

}  // namespace

std::vector<Ban> bans_of(const LogitRules& rules, const RowHistory& history) {
  const KnownAnswer answer = answer_of(history);
  const bool is_pending = history.pending >= 0;
  std::vector<Ban> bans;
  for (std::span<const TokenId> word : rules.bad_words) {
    if (word.empty()) continue;
    const TokenId last = word.back();
    std::span<const TokenId> before = word.first(word.size() - 1);
    TokenId after = -1;
    if (is_pending && !before.empty()) {
      after = before.back();
      before = before.first(before.size() - 1);
      if (after < 0) continue;  // no token
    }
    if (answer.ends_with(before)) bans.push_back({last, after});
  }
  if (static_cast<int64_t>(answer.size()) + (is_pending ? 1 : 0) < rules.min_tokens) {
    for (TokenId token : rules.held_back) bans.push_back({token});
  }
  return bans;
}

}  // namespace octavo
