// The part of Scheduler that admits waiting sequences and interrupts running ones for them.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "scheduler/explain_hit.h"
#include "scheduler/give_way.h"
#include "scheduler/scheduler.h"

namespace octavo {

void Scheduler::plan_waiting(Plan& plan) {
  // Pages being released are reserved for the sequence that preempted their owner.
  while (releasing_ == 0) {
    const Candidate next = next_waiting(plan.background);
    if (next.passed != nullptr && !plan.background &&
        free_slot_for(*next.passed, /*only_background=*/true))
      continue;
    if (next.sequence == nullptr) return;
    Sequence& sequence = *next.sequence;
    if (options_.whole_prompts) {
      if (!admit_whole(sequence, plan)) return;
      continue;
    }
    if (plan.budget == 0) {
      // Beside other requests the rows are few on purpose.
      if (!plan.beside_others) free_rows_for(sequence, plan);
      return;
    }
    const bool full = static_cast<int>(running_.size()) >= options_.max_num_seqs;
    if (full && giving_way_to(sequence).empty()) return;
    if (fetch_from_disk(sequence)) continue;
    if (!full && admit(sequence)) {
      if (next.passed != nullptr && sequence.request().adapter) ++next.passed->passed_by;
      plan_rows(sequence, plan);
      continue;
    }
    const auto others = giving_way_to(sequence);
    if (others.empty() || !has_pages_without(others, sequence)) return;
    give_way(*others.front());
  }
}

bool Scheduler::admit_whole(Sequence& sequence, Plan& plan) {
  const bool full = static_cast<int>(running_.size()) >= options_.max_num_seqs;
  if (full || rows_that_fit(sequence, plan) == 0 || !admit(sequence)) return false;
  plan_rows(sequence, plan);
  return true;
}

bool Scheduler::fetch_from_disk(Sequence& sequence) {
  if (disk_ == nullptr || std::exchange(sequence.asked_disk, true)) return false;
  auto restore = sequence.restore_prefix(*disk_);
  if (!restore) return false;
  sequence.memory_tokens = restore->from();
  const Rank rank = rank_of(sequence);
  waiting_.erase(rank);
  restoring_[rank] = {&sequence, std::move(restore)};
  return true;
}

void Scheduler::take_from_disk() {
  if (disk_ != nullptr && disk_->take_refuted()) {
    // They may have reused wrong pages, and compute more from them.
    for (const auto& [rank, sequence] : sequences_)
      if (sequence->computed() > 0) sequence->cache().stop_sharing();
    reset_prefix_cache();
  }
  if (restoring_.empty()) return;
  disk_->take_arrivals();
  std::erase_if(restoring_, [&](const auto& entry) {
    if (!entry.second.restore->done()) return false;
    waiting_[entry.first] = entry.second.sequence;
    return true;
  });
}

bool Scheduler::has_slot_for(const Sequence& sequence) const {
  const auto& adapter = sequence.request().adapter;
  return adapter == nullptr || adapter_slots_.has_place_for(*adapter);
}

Scheduler::Candidate Scheduler::next_waiting(bool background) const {
  Candidate found;
  for (const auto& [rank, sequence] : waiting_) {
    if (rank.background != background) return found;
    if (waits_for_choice(*sequence)) continue;
    // Sequences with an adapter keep its slot occupied, so only a limited number of them may pass one
    // that waits for a slot. Then the slots become free one by one.
    const bool may_pass = found.passed == nullptr || sequence->request().adapter == nullptr ||
                          found.passed->passed_by < options_.max_num_seqs;
    if (may_pass && has_slot_for(*sequence)) {
      found.sequence = sequence;
      return found;
    }
    if (found.passed == nullptr) found.passed = sequence;
  }
  return found;
}

bool Scheduler::free_slot_for(const Sequence& sequence, bool only_background) {
  bool found = false;
  while (!has_slot_for(sequence)) {
    const auto last = std::find_if(running_.rbegin(), running_.rend(), [&](const auto& entry) {
      return entry.second->request().adapter != nullptr && !entry.second->preempted &&
             (entry.first.background || !only_background);
    });
    if (last == running_.rend()) return found;  // a step in flight may still use the slots
    preempt(*last->second);
    found = true;
  }
  return found;
}

void Scheduler::free_rows_for(const Sequence& sequence, const Plan& plan) {
  // The rows of a sequence that decodes would go to the prompt of another running one.
  const bool all_decode =
      std::ranges::all_of(running_, [](const auto& entry) { return entry.second->is_decoding(); });
  const auto others = giving_way_to(sequence);
  const auto found = std::ranges::find_if(others, [&](const Sequence* other) {
    return (all_decode || !other->is_decoding()) &&
           std::ranges::find(plan.step.entries, other, &StepEntry::sequence) !=
               plan.step.entries.end();
  });
  if (found != others.end()) give_way(**found);
}

std::vector<Sequence*> Scheduler::giving_way_to(const Sequence& sequence) const {
  const auto after = running_.upper_bound(rank_of(sequence));
  if (after == running_.end()) return {};
  const auto before = static_cast<size_t>(std::distance(running_.begin(), after));
  return giving_way(sequence, running_in_order(), before);
}

bool Scheduler::has_pages_without(const std::vector<Sequence*>& others, Sequence& sequence) {
  sequence.reuse_prefix();
  const int missing = pages_to_admit(sequence, others) - prefixes_.pool().available_pages();
  sequence.restart();
  return missing <= pages_held_only_by(others, prefixes_.pool());
}

void Scheduler::give_way(Sequence& sequence) {
  turns_of(sequence).gave_way();
  preempt(sequence);
}

int Scheduler::pages_to_admit(const Sequence& sequence,
                              const std::vector<Sequence*>& without) const {
  const CachePlan& plan = prefixes_.plan();
  if (options_.whole_prompts) return sequence.missing_pages(plan, options_.max_num_batched_tokens);
  const int running = static_cast<int>(running_.size() - without.size());
  // One page per group for every running sequence, so that it is not preempted immediately.
  return sequence.missing_pages(plan, options_.max_num_batched_tokens) +
         running * static_cast<int>(plan.groups.size()) + pages_reserved_for_images(without);
}

bool Scheduler::admit(Sequence& sequence) {
  if (!has_slot_for(sequence)) return false;
  const int known = sequence.known();
  const bool first_time = !sequence.cached_tokens.has_value();
  const int hit = sequence.reuse_prefix();
  // A sequence that would be the only one running always fits.
  const bool careful = !running_.empty() && suspects_.empty();
  const int pages = pages_to_admit(sequence);
  if (careful && pages > prefixes_.pool().available_pages()) {
    sequence.restart();
    return false;
  }
  if (first_time) {
    sequence.cached_tokens = std::min(hit, sequence.prompt_length());
    turns_of(sequence).admitted(sequence.turn);
    if (sequence.choice() == 0 && sequence.request().pooling == Pooling::kNone) {
      sequence.cache_report = std::make_shared<const CacheReport>(
          explain_hit(sequence, hit, options_.enable_prefix_caching, history_, prefixes_.plan()));
      remember(sequence);
    }
    count_images(sequence, hit);
    sequence.scheduled = std::chrono::steady_clock::now();
    stats_.prefix_queries += static_cast<uint64_t>(known);
    stats_.prefix_hits += static_cast<uint64_t>(hit);
    if (sequence.memory_tokens >= 0)
      disk_->count_restored(std::max(0, hit - sequence.memory_tokens));
  }
  if (const auto& adapter = sequence.request().adapter)
    sequence.hold_adapter(*adapter_slots_.try_lease(adapter));
  const Rank rank = rank_of(sequence);
  waiting_.erase(rank);
  running_[rank] = &sequence;
  return true;
}

}  // namespace octavo
