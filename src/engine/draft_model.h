// draft_model.h - drafts tokens with a smaller model of the same vocabulary. Engine thread only.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/plan_engine.h"
#include "engine/runner.h"
#include "models/kv_store.h"
#include "scheduler/drafter.h"

namespace octavo {

// Keeps its own pages for each sequence, and draws with the seed, choice and positions of the
// sequence, so that drafts are good at any temperature. The least recently used sequence loses its
// pages first.
class DraftModel : public Drafter {
 public:
  // Loads the weights.
  explicit DraftModel(const DraftPlan& plan);

  bool expects_guess(const DraftKey& key, std::span<const TokenId> tokens) override;
  std::vector<std::vector<TokenId>> propose(std::span<const DraftRequest> requests) override;
  void forget(const DraftKey& key) override { followers_.erase(key); }

  uint64_t loaded_bytes() const { return source_.loaded_bytes(); }

 private:
  // The tokens of one sequence that the draft model has read.
  struct Follower {
    SequencePages pages;
    std::vector<TokenId> read = {};  // tokens with K and V; drafts at the end may be wrong
    size_t agreed = 0;               // of these, tokens known to be in the sequence
    uint64_t used = 0;               // higher is more recent
  };
  // A sequence in the steps of one propose().
  struct Guess {
    size_t request;
    Follower* follower;
    int newest_entry;
  };

  Follower& follower_of(const DraftKey& key);
  // Drops tokens that the sequence did not continue with.
  static void rewind(Follower& follower, std::span<const TokenId> tokens);
  bool make_room(Follower& follower, int tokens);
  std::vector<std::vector<TokenId>> run(std::span<const DraftRequest> requests);
  // Queues missing rows, up to one step. Returns the sequences that are complete; their first
  // drafts are drawn.
  std::vector<Guess> catch_up(std::span<const DraftRequest> requests);

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
