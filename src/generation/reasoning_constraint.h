// reasoning_constraint.h - lets a model reason within a budget before a grammar applies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/constraint.h"
#include "text/tokenizer.h"

namespace octavo {

struct ReasoningRules {
  bool inside =
      true;  // false: `open` as the first token starts it; any other token starts the answer
  std::optional<TokenId> open = {};
  std::string close = {};                 // the marker that ends it
  std::optional<int> budget = {};         // tokens; then only the closing marker is allowed
  int vocab = 0;                          // of the model's logits
  std::vector<TokenId> stop_tokens = {};  // not allowed before `inner` is complete
  std::shared_ptr<const Constraint> inner = nullptr;  // of the text after it; null: unconstrained
};

// The budget counts the tokens between the markers.
std::shared_ptr<const Constraint> reasoning_constraint(std::shared_ptr<const Tokenizer> tokenizer,
                                                       ReasoningRules rules);

}  // namespace octavo
