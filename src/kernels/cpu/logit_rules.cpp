#include "kernels/cpu/logit_rules.h"

#include <algorithm>
#include <limits>

#include "kernels/types/logit_bans.h"

namespace octavo::cpu {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

// The sequence so far, including the pending token or draft tokens.
struct Sequence {
  std::span<const TokenId> prompt;
  std::span<const TokenId> answer;  // the known part
  std::span<const TokenId> tail;    // the tokens after it
};

Sequence sequence_of(const RowHistory& history, std::span<const TokenId> previous) {
  Sequence out;
  if (history.log != nullptr) {
    const auto known = history.log->first(history.known);
    out.prompt = known.first(static_cast<size_t>(history.prompt));
    out.answer = known.subspan(static_cast<size_t>(history.prompt));
  }
  if (history.pending >= 0) out.tail = previous.subspan(static_cast<size_t>(history.pending), 1);
  if (history.assumed_count > 0)
    out.tail = std::span(*history.assumed).first(static_cast<size_t>(history.assumed_count));
  return out;
}

bool in_vocabulary(std::span<const float> logits, TokenId token) {
  return token >= 0 && static_cast<size_t>(token) < logits.size();
}

void ban(std::span<float> logits, TokenId token) {
  if (in_vocabulary(logits, token)) logits[static_cast<size_t>(token)] = kBanned;
}

// Which tokens a sequence contains and how often its output does. The destructor clears the memory
// in time proportional to the sequence.
class TokenCounts {
 public:
  TokenCounts(const Sequence& sequence, size_t vocab) {
    marks_.resize(std::max(marks_.size(), vocab));
    seen_.clear();
    for (TokenId token : sequence.prompt) mark(token, vocab, 0);
    for (TokenId token : sequence.answer) mark(token, vocab, kOnce);
    for (TokenId token : sequence.tail) mark(token, vocab, kOnce);
  }
  ~TokenCounts() {
    for (TokenId token : seen_) marks_[static_cast<size_t>(token)] = 0;
  }
  TokenCounts(const TokenCounts&) = delete;
  TokenCounts& operator=(const TokenCounts&) = delete;

  std::span<const TokenId> seen() const { return seen_; }
  uint32_t in_answer(TokenId token) const { return marks_[static_cast<size_t>(token)] / kOnce; }

 private:
  static constexpr uint32_t kSeen = 1;
  static constexpr uint32_t kOnce = 2;

  static void mark(TokenId token, size_t vocab, uint32_t added) {
    if (token < 0 || static_cast<size_t>(token) >= vocab) return;
    uint32_t& mark = marks_[static_cast<size_t>(token)];
    if (mark == 0) seen_.push_back(token);
    mark = (mark | kSeen) + added;
  }

  static thread_local std::vector<uint32_t> marks_;  // by token: kSeen, and kOnce per occurrence
  static thread_local std::vector<TokenId> seen_;
};
thread_local std::vector<uint32_t> TokenCounts::marks_;
thread_local std::vector<TokenId> TokenCounts::seen_;

void penalise(std::span<float> logits, const LogitRules& rules, const Sequence& sequence) {
  if (rules.repetition_penalty == 1 && rules.frequency_penalty == 0 && rules.presence_penalty == 0)
    return;
  const TokenCounts counts(sequence, logits.size());
  for (TokenId token : counts.seen()) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / rules.repetition_penalty : logit * rules.repetition_penalty;
    const uint32_t count = counts.in_answer(token);
    if (count == 0) continue;
    logit -= rules.frequency_penalty * static_cast<float>(count);
    logit -= rules.presence_penalty;
  }
}

}  // namespace

void ban_all_but(std::span<float> logits, std::span<const uint32_t> allowed) {
  constexpr size_t kBits = 32;
  for (size_t first = 0; first < logits.size(); first += kBits) {
    const uint32_t word = first / kBits < allowed.size() ? allowed[first / kBits] : 0;
    if (word == ~uint32_t{0}) continue;
    const auto some = logits.subspan(first, std::min(kBits, logits.size() - first));
    if (word == 0) {
      std::ranges::fill(some, kBanned);
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i)
      if ((word >> i & 1) == 0) some[i] = kBanned;
  }
}

void apply_rules(std::span<float> logits, const LogitRules& rules, const RowHistory& history,
                 std::span<const TokenId> previous) {
  const Sequence sequence = sequence_of(history, previous);
  if (!rules.allowed.empty()) ban_all_but(logits, rules.allowed);
  for (const Ban& each : bans_of(rules, history)) {
    if (each.after < 0 || each.after == sequence.tail[0]) ban(logits, each.token);
  }
  for (const auto& [token, bias] : rules.logit_bias)
    if (in_vocabulary(logits, token)) logits[static_cast<size_t>(token)] += bias;
  penalise(logits, rules, sequence);
}

}  // namespace octavo::cpu
