// reasoning_constraint.h - lets a model think before a grammar begins, and not for too long.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/constraint.h"
#include "text/tokenizer.h"

namespace octavo {

struct ReasoningRules {
  bool inside = true;  // else `open` as the first token opens it, and any other is the answer's
  std::optional<TokenId> open = {};
  std::string close = {};                             // the marker that ends it
  std::optional<int> budget = {};                     // tokens; at it only the marker's may come
  int vocab = 0;                                      // of the model's logits
  std::vector<TokenId> stop_tokens = {};              // may not come before what `inner` wants has
  std::shared_ptr<const Constraint> inner = nullptr;  // of what comes behind; none: anything
};

// The budget counts tokens behind the opening marker, the closing one not among them.
std::shared_ptr<const Constraint> reasoning_constraint(std::shared_ptr<const Tokenizer> tokenizer,
                                                       ReasoningRules rules);

}  // namespace octavo
