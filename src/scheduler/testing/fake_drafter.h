// fake_drafter.h - for tests: drafts the tokens of the fake model, right or wrong at given rates.
// No MLX.
#pragma once

#include <random>
#include <set>
#include <span>
#include <vector>

#include "scheduler/drafter.h"
#include "scheduler/testing/fake_model.h"

namespace octavo {

class FakeDrafter : public Drafter {
 public:
  struct Options {
    int vocab = 0;
    int right_percent = 50;   // of the tokens
    int silent_percent = 20;  // of the calls: no guess
    unsigned seed = 1;
  };

  // The model must outlive the drafter.
  FakeDrafter(const FakeModel& model, Options options)
      : model_(model), options_(options), random_(options.seed) {}

  bool expects_guess(const DraftKey&, std::span<const TokenId>) override {
    return !chance(options_.silent_percent);
  }

  std::vector<std::vector<TokenId>> propose(std::span<const DraftRequest> requests) override {
    std::vector<std::vector<TokenId>> drafts;
    for (const DraftRequest& request : requests) {
      known_.insert(request.key);
      drafts.push_back(chance(options_.silent_percent) ? std::vector<TokenId>{} : guess(request));
    }
    return drafts;
  }

  void forget(const DraftKey& key) override { known_.erase(key); }

  // Sequences that have drafted and have not ended.
  size_t known() const { return known_.size(); }

 private:
  std::vector<TokenId> guess(const DraftRequest& request) {
    std::vector<TokenId> tokens(request.tokens.begin(), request.tokens.end());
    RowSampling sampling = request.sampling;
    OCTAVO_CHECK(sampling.position == tokens.size());
    std::vector<TokenId> drafts;
    const int count = std::uniform_int_distribution<int>(1, request.most)(random_);
    for (int i = 0; i < count; ++i, ++sampling.position) {
      TokenId token = model_.next_token(tokens, sampling);
      if (!chance(options_.right_percent))
        token = std::uniform_int_distribution<TokenId>(0, options_.vocab - 1)(random_);
      tokens.push_back(token);
      drafts.push_back(token);
    }
    return drafts;
  }
  bool chance(int percent) {
    return std::uniform_int_distribution<int>(1, 100)(random_) <= percent;
  }

  const FakeModel& model_;
  Options options_;
  std::mt19937 random_;
  std::set<DraftKey> known_;
};

}  // namespace octavo
