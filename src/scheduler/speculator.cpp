#include "scheduler/speculator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo {
namespace {

// Speculation that did not pay off is tried again after this many refusals.
constexpr int kRefusalsBeforeATry = 256;

DraftKey key_of(const Sequence& sequence) { return {sequence.shared().id, sequence.choice()}; }

// Expected number of accepted tokens of `drafts`, each accepted with `chance` if all before it are.
double expected_right(double chance, int drafts) {
  double sum = 0;
  double all_so_far = 1;
  for (int i = 0; i < drafts; ++i) sum += all_so_far *= chance;
  return sum;
}

}  // namespace

Speculator::Speculator(SpeculationOptions options, std::unique_ptr<Drafter> drafter)
    : options_(options), drafter_(std::move(drafter)) {}

bool Speculator::may_draft(const Sequence& sequence) const {
  return sequence.is_decoding() && !sequence.preempted && !sequence.failed_before &&
         sequence.pace.may_draft(sequence.length());
}

double Speculator::least_chance(int rows) const {
  const double step = costs_.seconds(rows);
  if (step == 0 || options_.at_any_cost) return 0;
  const double row =
      (costs_.seconds(rows + options_.most_drafts) - step) / std::max(1, options_.most_drafts);
  return row * rows / step;
}

int Speculator::most_for(const Sequence& sequence, double least_chance) const {
  // The token drawn after the last draft must still fit max_length.
  const int room = sequence.shared().max_length - sequence.length() - 1;
  const int most = std::min(options_.most_drafts, room);
  int drafts = 0;
  double chance = sequence.pace.chance();
  for (double all = chance; drafts < most && all > least_chance; all *= chance) ++drafts;
  return drafts;
}

std::vector<Speculator::Candidate> Speculator::candidates(
    std::span<Sequence* const> sequences) const {
  std::vector<Candidate> found;
  const auto rows = static_cast<int>(sequences.size());
  int room = options_.most_rows - rows;
  const double least = least_chance(rows);
  for (Sequence* sequence : sequences) {
    if (!may_draft(*sequence)) continue;
    const int most = std::min(most_for(*sequence, least), room);
    if (most <= 0) continue;
    found.push_back({sequence, most});
    room -= most;
  }
  return found;
}

bool Speculator::pays(int rows, int draft_rows, double right) {
  const double plain = costs_.seconds(rows) * (rows + right);
  const double with_drafts = (costs_.seconds(rows + draft_rows) + costs_.gap()) * rows;
  if (options_.at_any_cost || plain >= with_drafts || ++refusals_ >= kRefusalsBeforeATry) {
    refusals_ = 0;
    return true;
  }
  return false;
}

bool Speculator::is_worth_waiting(std::span<Sequence* const> sequences) {
  if (!drafter_) return false;
  int draft_rows = 0;
  double right = 0;
  std::vector<Sequence*> waiting;
  for (const Candidate& candidate : candidates(sequences)) {
    Sequence& sequence = *candidate.sequence;
    if (!drafter_->expects_guess(key_of(sequence), sequence.tokens())) continue;
    draft_rows += candidate.most;
    right += expected_right(sequence.pace.chance(), candidate.most);
    waiting.push_back(&sequence);
  }
  if (waiting.empty() || !pays(static_cast<int>(sequences.size()), draft_rows, right)) return false;
  for (Sequence* sequence : waiting) sequence->pace.waited = true;
  return true;
}

Drafts Speculator::drafts_for(std::span<Sequence* const> sequences) {
  Drafts drafts;
  if (!drafter_) return drafts;
  std::vector<DraftRequest> requests;
  std::vector<Sequence*> asked;
  for (const Candidate& candidate : candidates(sequences)) {
    Sequence& sequence = *candidate.sequence;
    requests.push_back({.key = key_of(sequence),
                        .tokens = sequence.tokens(),
                        .most = candidate.most,
                        .sampling = sequence.row_sampling(),
                        .predicted = sequence.predicted});
    asked.push_back(&sequence);
  }
  if (requests.empty()) return drafts;
  std::vector<std::vector<TokenId>> proposed = drafter_->propose(requests);
  int draft_rows = 0;
  double right = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    Sequence& sequence = *asked[i];
    const bool waited = std::exchange(sequence.pace.waited, false);
    const auto count = static_cast<int>(proposed[i].size());
    if (count == 0) {
      if (waited) sequence.pace.observe(1, 0, sequence.length());
      continue;
    }
    draft_rows += count;
    right += expected_right(sequence.pace.chance(), count);
    drafts[&sequence] = std::move(proposed[i]);
  }
  if (!drafts.empty() && !pays(static_cast<int>(sequences.size()), draft_rows, right))
    drafts.clear();
  return drafts;
}

void Speculator::observe(Sequence& sequence, int drafted, int right, SchedulerStats& stats) {
  sequence.pace.observe(drafted, right, sequence.known());
  ++stats.drafts;
  stats.draft_tokens += static_cast<uint64_t>(drafted);
  stats.accepted_tokens += static_cast<uint64_t>(right);
}

void Speculator::forget(const Sequence& sequence) {
  if (drafter_) drafter_->forget(key_of(sequence));
}

}  // namespace octavo
