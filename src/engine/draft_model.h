// draft_model.h - a smaller model of the same vocabulary guesses how sequences go on. Engine thread
// only.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/plan_engine.h"
#include "engine/runner.h"
#include "models/kv_store.h"
#include "scheduler/drafter.h"

namespace octavo {

// Follows each sequence with pages of its own, and draws with the sequence's own seed, choice and
// positions, so that it guesses well at any temperature. Whoever has been away longest gives up its
// pages for others.
class DraftModel : public Drafter {
 public:
  // Loads the weights.
  explicit DraftModel(const DraftPlan& plan);

  bool expects_guess(const DraftKey& key, std::span<const TokenId> tokens) override;
  std::vector<std::vector<TokenId>> propose(std::span<const DraftAsk> asks) override;
  void forget(const DraftKey& key) override { followers_.erase(key); }

  uint64_t loaded_bytes() const { return source_.loaded_bytes(); }

 private:
  // One sequence as far as the model has read it.
  struct Follower {
    SequencePages pages;
    std::vector<TokenId> read = {};  // tokens with K and V; guesses at the end may be wrong
    size_t agreed = 0;               // of them, tokens of the sequence for certain
    uint64_t used = 0;               // newest is highest
  };
  // A sequence in the steps of one propose().
  struct Guess {
    size_t ask;
    Follower* follower;
    int newest_entry;
  };

  Follower& follower_of(const DraftKey& key);
  // Keeps of what was read what the sequence turned out to say.
  static void rewind(Follower& follower, std::span<const TokenId> tokens);
  bool make_room(Follower& follower, int tokens);
  std::vector<std::vector<TokenId>> run(std::span<const DraftAsk> asks);
  // Queues the rows that are missing, as many as one step takes. Returns those that are all there,
  // whose first guesses it draws.
  std::vector<Guess> catch_up(std::span<const DraftAsk> asks);

  DraftPlan plan_;
  WeightSource source_;
  DecoderModel model_;
  KvStore kv_;
  PagePool pool_;
  Runner runner_;
  std::map<DraftKey, Follower> followers_;
  uint64_t calls_ = 0;
  bool failed_ = false;
};

}  // namespace octavo
