// speculator.h - decides who drafts in the next step, and how far. No MLX. Engine thread only.
//
// A draft is checked in the step that would have drawn its first token anyway: the token that
// counts is always the one drawn, so drafts change the time of an answer and none of its bits. What
// they cost is rows, and that nothing can be queued behind the step that checks them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "scheduler/drafter.h"
#include "scheduler/engine_stats.h"
#include "scheduler/sequence.h"
#include "scheduler/step_costs.h"

namespace octavo {

struct SpeculationOptions {
  int most_drafts = 0;       // num_speculative_tokens: of a sequence in a step
  int most_rows = 0;         // of a step that decodes, drafts included
  bool at_any_cost = false;  // for tests: whatever steps have cost
};

// By sequence; never empty.
using Drafts = std::map<const Sequence*, std::vector<TokenId>>;

class Speculator {
 public:
  // `drafter` may be null: nobody drafts.
  Speculator(SpeculationOptions options, std::unique_ptr<Drafter> drafter);

  // Drafts for those of `sequences`, all that decode, for whom they are worth it. Nothing is in
  // flight.
  Drafts drafts_for(std::span<Sequence* const> sequences);
  // Tokens of `sequences` are in flight, and knowing them would make drafts possible that are worth
  // more than a step queued ahead.
  bool is_worth_waiting(std::span<Sequence* const> sequences);
  // A step has checked `drafted` drafts and found the first `right` of them so.
  void observe(Sequence& sequence, int drafted, int right, SchedulerStats& stats);
  void forget(const Sequence& sequence);

  bool drafts() const { return drafter_ != nullptr; }
  StepCosts& costs() { return costs_; }

 private:
  struct Candidate {
    Sequence* sequence;
    int most;
  };

  bool may_draft(const Sequence& sequence) const;
  int most_for(const Sequence& sequence, double least_chance) const;
  // Chance below which a row costs more than its token is worth.
  double least_chance(int rows) const;
  std::vector<Candidate> candidates(std::span<Sequence* const> sequences) const;
  // Whether `right` more tokens are worth so many more rows, and the wait behind them.
  bool pays(int rows, int draft_rows, double right);

  SpeculationOptions options_;
  std::unique_ptr<Drafter> drafter_;
  StepCosts costs_;
  int refusals_ = 0;
};

}  // namespace octavo
