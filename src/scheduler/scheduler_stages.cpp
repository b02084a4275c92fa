// The part of Scheduler that divides rows among the steps in flight of a pipeline.
#include <algorithm>
#include <cstdint>

#include "scheduler/scheduler.h"

namespace octavo {
namespace {

int divide_up(int value, int by) { return (value + by - 1) / by; }

}  // namespace

int SchedulerOptions::step_rows() const {
  if (pipeline_stages == 1) return max_num_batched_tokens;
  const int group = divide_up(max_num_seqs, pipeline_stages);
  const int share = max_num_batched_tokens / pipeline_stages;
  return std::max({1, share, std::min(group, max_num_batched_tokens)});
}

bool Scheduler::may_continue(const Sequence& sequence) const {
  if (sequence.awaits_token()) return false;
  // CachePlan::state_copies() counts the states that two steps in flight use.
  return !prefixes_.plan().state || sequence.steps_in_flight < 2;
}

int Scheduler::rows_now(const Sequence& sequence) const {
  if (!pipelined()) return sequence.rows_left();
  if (!may_continue(sequence)) return 0;
  // CacheGroup::pages_held() counts two steps of max_num_batched_tokens rows in flight.
  const int in_flight = sequence.computed() - sequence.complete();
  const int64_t most = 2 * int64_t{options_.max_num_batched_tokens} - in_flight;
  return static_cast<int>(std::min<int64_t>(sequence.rows_left(), most));
}

// Steps hold groups of equal size, so that all stages take about the same time. A group is one of
// as many as there are stages: with more and smaller groups, the weights would be read more often
// for the same tokens.
Scheduler::DecodeGroup Scheduler::next_group(bool background) const {
  const auto groups_in_flight = std::ranges::count_if(
      steps_, [&](const Step& step) { return step.decodes[background ? 1 : 0]; });
  const int missing = options_.pipeline_stages - static_cast<int>(groups_in_flight);
  DecodeGroup group;
  if (missing <= 0) return group;
  int decoding = 0;
  for (const auto& [rank, sequence] : running_) {
    if (rank.background != background || sequence->preempted || !sequence->is_decoding()) continue;
    ++decoding;
    if (may_continue(*sequence)) group.ready.push_back(sequence);
  }
  std::ranges::stable_sort(group.ready, {}, &Sequence::newest_step);
  group.size = std::min(divide_up(decoding, options_.pipeline_stages),
                        divide_up(static_cast<int>(group.ready.size()), missing));
  return group;
}

void Scheduler::plan_group(Plan& plan) {
  DecodeGroup group = next_group(plan.background);
  if (!plan.beside_others && speculator_.drafts()) {
    // No other sequence waits for drafts to be verified. Their number of states allows no other
    // step of the same sequence.
    std::vector<Sequence*> alone(group.ready.begin(), group.ready.begin() + group.size);
    std::erase_if(alone, [](const Sequence* sequence) { return sequence->steps_in_flight > 0; });
    plan.drafts = speculator_.drafts_for(alone);
  }
  for (Sequence* sequence : group.ready) {
    if (group.size == 0) return;
    // make_room() may have preempted it.
    if (!running_.contains(rank_of(*sequence)) || sequence->preempted) continue;
    if (!plan_rows(*sequence, plan)) continue;
    plan.step.decodes[plan.background ? 1 : 0] = true;
    --group.size;
  }
}

bool Scheduler::limit_background(Plan& plan) {
  const int rows = plan.step.shares.rows;
  const bool others_in_flight =
      pipelined() && !steps_.empty() && !running_.empty() && !running_.begin()->first.background;
  plan.beside_others = rows > 0 || others_in_flight;
  if (!plan.beside_others) return true;
  // With all stages busy, a step of background rows alone would delay the other requests.
  if (rows == 0 && steps_in_flight() >= options_.pipeline_stages) return false;
  plan.budget = std::min(plan.budget, background_rows_.next_limit());
  return true;
}

}  // namespace octavo
