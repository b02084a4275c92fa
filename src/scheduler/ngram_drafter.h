// ngram_drafter.h - prompt lookup: drafts the tokens that followed the last earlier occurrence of
// the newest tokens. No MLX. Engine thread only.
#pragma once

#include <map>
#include <vector>

#include "scheduler/drafter.h"
#include "scheduler/ngram_index.h"

namespace octavo {

class NgramDrafter : public Drafter {
 public:
  explicit NgramDrafter(NgramLengths lengths) : lengths_(lengths) {}

  bool expects_guess(const DraftKey& key, std::span<const TokenId> tokens) override {
    return !index_of(key).continuation(tokens, 1).empty();
  }
  std::vector<std::vector<TokenId>> propose(std::span<const DraftRequest> requests) override {
    std::vector<std::vector<TokenId>> drafts;
    for (const DraftRequest& request : requests)
      drafts.push_back(index_of(request.key).continuation(request.tokens, request.most));
    return drafts;
  }
  void forget(const DraftKey& key) override { indexes_.erase(key); }

 private:
  NgramIndex& index_of(const DraftKey& key) {
    return indexes_.try_emplace(key, lengths_).first->second;
  }

  NgramLengths lengths_;
  std::map<DraftKey, NgramIndex> indexes_;
};

}  // namespace octavo
