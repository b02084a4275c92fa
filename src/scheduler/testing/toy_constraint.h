// toy_constraint.h - for tests: alternates even and odd tokens, then requires a stop token. No MLX.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "scheduler/constraint.h"

namespace octavo {

struct ToyRules {
  int vocab = 0;
  TokenId stop = 0;    // not before the end
  int length = 0;      // of the output, without the stop token
  int fails_at = -1;   // the mask after this many tokens cannot be computed
  bool closed = true;  // false: no token is allowed after the last, not even the stop token
  std::shared_ptr<std::atomic<int>> failed = {};  // counts calls of failed()
};

class ToyConstraint : public Constraint {
 public:
  explicit ToyConstraint(ToyRules rules) : rules_(rules) {}

  class State : public ConstraintState {
   public:
    explicit State(ToyRules rules) : rules_(rules) {}

    std::vector<uint32_t> allowed() override {
      if (static_cast<int>(tokens_.size()) == rules_.fails_at)
        throw std::runtime_error("the toy is broken");
      std::vector<uint32_t> words(static_cast<size_t>(rules_.vocab + 31) / 32);
      for (TokenId token = 0; token < rules_.vocab; ++token) {
        if (may_come(token)) words[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
      }
      return words;
    }
    bool accept(TokenId token) override {
      if (!may_come(token)) return false;
      tokens_.push_back(token);
      return true;
    }
    void take_back(int tokens) override {
      tokens_.resize(tokens_.size() - static_cast<size_t>(tokens));
    }

    void failed() override {
      if (rules_.failed) ++*rules_.failed;
    }

    bool may_come(TokenId token) const {
      const auto length = static_cast<int>(tokens_.size());
      if (length == rules_.length) return rules_.closed && token == rules_.stop;
      return length < rules_.length && token != rules_.stop && token % 2 == length % 2;
    }

   private:
    ToyRules rules_;
    std::vector<TokenId> tokens_;
  };

  std::unique_ptr<ConstraintState> begin() const override {
    return std::make_unique<State>(rules_);
  }

 private:
  ToyRules rules_;
};

}  // namespace octavo
