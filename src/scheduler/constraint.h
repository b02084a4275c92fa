// constraint.h - what an answer may say, token by token: a grammar, a budget. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace octavo {

// Where one answer stands. One thread at a time.
class ConstraintState {
 public:
  virtual ~ConstraintState() = default;

  // What may come next, as TokenMask::set takes it: no words when everything may. All zero when
  // nothing may: the answer cannot go on.
  virtual std::vector<uint32_t> allowed() = 0;
  // The next token. False, and nothing has changed, when it may not come.
  virtual bool accept(TokenId token) = 0;
  // Forgets the last `tokens` accepted ones.
  virtual void take_back(int tokens) = 0;
};

// Compiled and immutable; one object serves every choice, any thread. Must outlive its states.
class Constraint {
 public:
  virtual ~Constraint() = default;
  virtual std::unique_ptr<ConstraintState> begin() const = 0;
};

}  // namespace octavo
