// prompt_history.h - recent prompts and outputs, to explain prefix cache misses. No MLX. Engine
// thread only.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"

namespace octavo {

class PromptHistory {
 public:
  // Texts are compared only with those of the same owner.
  struct Owner {
    std::string key;
    std::string salt;
    uint64_t adapter = 0;
    bool operator==(const Owner&) const = default;
  };
  struct Match {
    int common = 0;      // length of the common prefix with the most similar text
    bool ended = true;   // that text has no further tokens
    bool known = false;  // there is a text of this owner
  };

  Match closest(std::span<const TokenId> prompt, const Owner& owner) const;
  // A text replaces an older one that it continues.
  void remember(std::span<const TokenId> text, const Owner& owner);

  size_t texts() const { return texts_.size(); }
  size_t tokens() const { return tokens_; }

  static constexpr size_t kMostTexts = 64;
  static constexpr size_t kMostTokens = 1 << 20;

 private:
  struct Text {
    Owner owner;
    std::vector<TokenId> tokens;
  };

  std::deque<Text> texts_;  // least recently used first
  size_t tokens_ = 0;       // of all
};

}  // namespace octavo
