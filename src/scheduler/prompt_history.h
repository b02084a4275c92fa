// prompt_history.h - the prompts and answers of late, to tell why one that looks known is not. No
// MLX. Engine thread only.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"

namespace octavo {

class PromptHistory {
 public:
  // Whose a text is: nobody hears of another's.
  struct Owner {
    std::string key;
    std::string salt;
    bool operator==(const Owner&) const = default;
  };
  struct Match {
    int common = 0;      // tokens the most similar one has in common with the prompt, at the front
    bool ended = true;   // it has no more than these
    bool known = false;  // there is one of this owner
  };

  Match closest(std::span<const TokenId> prompt, const Owner& owner) const;
  // A text that goes on from an older one takes its place.
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

  std::deque<Text> texts_;  // the one used longest ago first
  size_t tokens_ = 0;       // of all
};

}  // namespace octavo
