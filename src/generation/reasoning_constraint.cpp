#include "generation/reasoning_constraint.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo {
namespace {

struct Shared {
  std::shared_ptr<const Tokenizer> tokenizer;
  ReasoningRules rules;
  std::vector<TokenId> close;  // tokens of the closing marker when it is forced
};

void set_bit(std::vector<uint32_t>& words, TokenId token) {
  const auto bit = static_cast<size_t>(token);
  if (bit / 32 < words.size()) words[bit / 32] |= 1U << (bit % 32);
}

class ReasoningState : public ConstraintState {
 public:
  explicit ReasoningState(std::shared_ptr<const Shared> shared) : shared_(std::move(shared)) {
    if (rules().inner) inner_ = rules().inner->begin();
    places_.push_back({.phase = rules().inside ? Phase::kThinking : Phase::kBefore});
  }

  std::vector<uint32_t> allowed() override {
    const Place& now = places_.back();
    switch (now.phase) {
      case Phase::kBefore: {
        std::vector<uint32_t> words = behind();
        if (!words.empty() && rules().open) set_bit(words, *rules().open);
        return words;
      }
      case Phase::kThinking:
        if (spent(now)) return only(shared_->close.front());
        return inner_ ? all_but_stops() : std::vector<uint32_t>();
      case Phase::kClosing:
        return only(shared_->close[now.closed]);
      default:
        return behind();
    }
  }

  bool accept(TokenId token) override {
    Place next = places_.back();
    switch (next.phase) {
      case Phase::kBefore:
        if (token == rules().open) {
          next.phase = Phase::kThinking;
        } else {
          next.phase = Phase::kBehind;
          if (inner_ && !inner_->accept(token)) return false;
          ++next.inner_tokens;
        }
        break;
      case Phase::kThinking:
      case Phase::kClosing:
        if (!think(token, next)) return false;
        break;
      case Phase::kBehind:
        if (inner_ && !inner_->accept(token)) return false;
        ++next.inner_tokens;
    }
    places_.push_back(std::move(next));
    return true;
  }

  void take_back(int tokens) override {
    const int reached = places_.back().inner_tokens;
    places_.resize(places_.size() - static_cast<size_t>(tokens), {.phase = Phase::kBehind});
    const int taken = reached - places_.back().inner_tokens;
    if (inner_ && taken > 0) inner_->take_back(taken);
  }
  void failed() override {
    if (inner_) inner_->failed();
  }

 private:
  enum class Phase : uint8_t { kBefore, kThinking, kClosing, kBehind };
  struct Place {
    Phase phase;
    int used = 0;       // tokens of reasoning
    size_t closed = 0;  // tokens of the forced marker
    int inner_tokens = 0;
    std::string tail = {};  // the last text, shorter than the closing marker
  };

  const ReasoningRules& rules() const { return shared_->rules; }
  bool spent(const Place& place) const { return rules().budget && place.used >= *rules().budget; }
  std::vector<uint32_t> behind() { return inner_ ? inner_->allowed() : std::vector<uint32_t>(); }

  size_t words() const { return (static_cast<size_t>(rules().vocab) + 31) / 32; }
  std::vector<uint32_t> only(TokenId token) const {
    std::vector<uint32_t> mask(words());
    set_bit(mask, token);
    return mask;
  }
  std::vector<uint32_t> all_but_stops() const {
    std::vector<uint32_t> mask(words(), ~0U);
    for (const TokenId token : rules().stop_tokens) {
      const auto bit = static_cast<size_t>(token);
      if (bit / 32 < mask.size()) mask[bit / 32] &= ~(1U << (bit % 32));
    }
    return mask;
  }

  bool think(TokenId token, Place& next) const {
    if (next.phase == Phase::kClosing || spent(next)) {
      if (token != shared_->close[next.closed]) return false;
      ++next.closed;
      next.phase = next.closed == shared_->close.size() ? Phase::kBehind : Phase::kClosing;
      return true;
    }
    if (inner_ && std::ranges::count(rules().stop_tokens, token) > 0) return false;
    const std::array<TokenId, 1> one = {token};
    next.tail += shared_->tokenizer->decode(one, false);
    if (next.tail.find(rules().close) != std::string::npos) {
      next.phase = Phase::kBehind;
      next.tail.clear();
      return true;
    }
    ++next.used;
    if (next.tail.size() >= rules().close.size())
      next.tail.erase(0, next.tail.size() - rules().close.size() + 1);
    return true;
  }

  std::shared_ptr<const Shared> shared_;
  std::unique_ptr<ConstraintState> inner_;
  std::vector<Place> places_;  // after each token; the first is the start
};

class ReasoningConstraint : public Constraint {
 public:
  explicit ReasoningConstraint(std::shared_ptr<const Shared> shared) : shared_(std::move(shared)) {}
  std::unique_ptr<ConstraintState> begin() const override {
    return std::make_unique<ReasoningState>(shared_);
  }

 private:
  std::shared_ptr<const Shared> shared_;
};

}  // namespace

std::shared_ptr<const Constraint> reasoning_constraint(std::shared_ptr<const Tokenizer> tokenizer,
                                                       ReasoningRules rules) {
  auto close = tokenizer->encode(rules.close, false);
  return std::make_shared<const ReasoningConstraint>(std::make_shared<const Shared>(
      Shared{std::move(tokenizer), std::move(rules), std::move(close)}));
}

}  // namespace octavo
