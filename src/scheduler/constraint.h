// constraint.h - limits which tokens a choice may draw: a grammar, a budget. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace octavo {

// The progress of one choice. One thread at a time.
class ConstraintState {
 public:
  virtual ~ConstraintState() = default;

  // The tokens that may come next, as TokenMask::set takes them. Empty: all. All zero: none, so the
  // choice must end.
  virtual std::vector<uint32_t> allowed() = 0;
  // Advances by one token. Returns false, without a change, if the token is not allowed.
  virtual bool accept(TokenId token) = 0;
  // Undoes the last `tokens` accepted tokens.
  virtual void take_back(int tokens) = 0;
  // The choice ends, because a call threw or a drawn token did not fit. Not after an error behind a
  // draft, since the choice may continue without it. The last call.
  virtual void failed() {}
};

// Compiled and immutable; shared by all choices. Any thread. Must outlive its states.
class Constraint {
 public:
  virtual ~Constraint() = default;
  virtual std::unique_ptr<ConstraintState> begin() const = 0;
};

}  // namespace octavo
