// speculator.h - decides which sequences draft in the next step, and how many tokens. No MLX.
// Engine thread only.
//
// A draft is verified by the step that draws its first token anyway. The drawn token always counts,
// so drafts change the speed but not the output. They cost rows, and, unless there are several
// pipeline stages, no step is queued while they are verified.
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
  int most_drafts = 0;       // num_speculative_tokens: per sequence and step
  int most_rows = 0;         // of a decode step, including drafts
  bool at_any_cost = false;  // for tests: ignore step costs
};

// By sequence; a draft is never empty.
using Drafts = std::map<const Sequence*, std::vector<TokenId>>;

class Speculator {
 public:
  // `drafter` may be null: no speculation.
  Speculator(SpeculationOptions options, std::unique_ptr<Drafter> drafter);

  // Returns drafts for those of the decoding `sequences` where they pay off. None of them may have
  // rows in flight.
  Drafts drafts_for(std::span<Sequence* const> sequences);
  // True if it is better to wait for the tokens in flight, because the drafts they make possible
  // are worth more than a step queued ahead.
  bool is_worth_waiting(std::span<Sequence* const> sequences);
  // A step has verified `drafted` draft tokens and accepted the first `right`.
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
  // The probability below which a row costs more than its token is worth.
  double least_chance(int rows) const;
  std::vector<Candidate> candidates(std::span<Sequence* const> sequences) const;
  // True if `right` more tokens are worth `draft_rows` more rows and the gap after the step.
  bool pays(int rows, int draft_rows, double right);

  SpeculationOptions options_;
  std::unique_ptr<Drafter> drafter_;
  StepCosts costs_;
  int refusals_ = 0;
};

}  // namespace octavo
