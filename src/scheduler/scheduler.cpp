#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "scheduler/explain_hit.h"

namespace octavo {
namespace {

// Beside other requests, a prompt of a background request that must run in one step may exceed the limit
// of background rows in one of so many steps.
constexpr uint64_t kStepsPerExceedingPrompt = 8;

Update update_of(const Sequence& sequence) {
  return {.request = sequence.shared().id, .choice = sequence.choice()};
}

bool says_something(const Update& update) {
  return !update.tokens.empty() || !update.prompt_logprobs.empty() || update.finish.has_value() ||
         update.cache != nullptr;
}

SpeculationOptions speculation_of(const SchedulerOptions& options) {
  SpeculationOptions speculation = options.speculation;
  if (options.pipeline_stages > 1)
    speculation.most_rows = std::min(speculation.most_rows, options.step_rows());
  return speculation;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, PrefixCache& prefixes, PrefixDisk* disk,
                     std::unique_ptr<Drafter> drafter)
    : options_(std::move(options)),
      prefixes_(prefixes),
      disk_(disk),
      mask_worker_(options_.mask_threads),
      adapter_slots_(options_.adapter_slots),
      image_store_(options_.images),
      turns_(options_.max_num_seqs),
      background_turns_(options_.max_num_seqs),
      speculator_(speculation_of(options_), std::move(drafter)) {
  // Without a prefix cache, keys contain request ids, which repeat after a restart.
  OCTAVO_CHECK(disk == nullptr || options_.enable_prefix_caching);
  OCTAVO_CHECK(options_.max_num_seqs >= 1 && options_.max_num_batched_tokens >= 1);
  OCTAVO_CHECK(
      options_.pipeline_stages == 1 ||
      (options_.pipeline_stages > 1 && options_.adapter_slots == 0 && !options_.images.enabled));
  OCTAVO_CHECK(!options_.whole_prompts ||
               (options_.pipeline_stages == 1 && options_.adapter_slots == 0 &&
                !options_.images.enabled && !options_.enable_prefix_caching && !options_.predicts &&
                !speculator_.drafts() && !prefixes.plan().state));
  OCTAVO_CHECK(!options_.images.enabled ||
               options_.images.max_image_tokens <= options_.images.kept_tokens);
  // All but one of the sequences may decode beside an image that runs in one step.
  OCTAVO_CHECK(
      !options_.images.sees_block ||
      (!prefixes.plan().state && options_.images.max_image_tokens + options_.max_num_seqs - 1 <=
                                     options_.max_num_batched_tokens));
  const int most =
      prefixes.plan().pages_held(options_.max_model_len, options_.max_num_batched_tokens);
  OCTAVO_CHECK(most <= prefixes.pool().page_count());
  OCTAVO_CHECK(!speculator_.drafts() || !prefixes.plan().state ||
               prefixes.plan().state_drafts >= options_.speculation.most_drafts);
}

Scheduler::~Scheduler() = default;

Scheduler::Rank Scheduler::rank_of(const Sequence& sequence) const {
  const RequestShared& shared = sequence.shared();
  const bool by_priority = options_.policy == SchedulingPolicy::kPriority;
  return {shared.request.background, by_priority ? shared.request.priority : 0, sequence.turn,
          shared.id, sequence.choice()};
}

void Scheduler::add(RequestId id, Request request) {
  OCTAVO_CHECK(request.adapter == nullptr || options_.adapter_slots > 0);
  OCTAVO_CHECK(request.images.empty() || options_.images.enabled);
  OCTAVO_CHECK(!options_.whole_prompts ||
               (request.pooling != Pooling::kNone &&
                std::ssize(request.prompt) <= options_.max_num_batched_tokens));
  const auto shared = share_request(id, std::move(request), options_, prefixes_.plan());
  const auto& resumed = shared->request.resumed;
  for (int choice = 0; choice < shared->request.n; ++choice) {
    if (!resumed.empty() && resumed[static_cast<size_t>(choice)].finished) continue;
    auto sequence = std::make_unique<Sequence>(shared, choice, prefixes_, mask_worker_);
    sequence->turn = turns_of(*sequence).enter(shared->request.owner, sequence->call());
    const Rank rank = rank_of(*sequence);
    waiting_[rank] = sequence.get();
    OCTAVO_CHECK(sequences_.emplace(rank, std::move(sequence)).second);
  }
}

std::vector<Update> Scheduler::abort(RequestId id, std::optional<int> only_choice) {
  std::vector<Sequence*> open;
  for (const auto& [rank, sequence] : sequences_) {
    if (rank.arrival != id || sequence->finished) continue;
    if (rank.choice == only_choice.value_or(rank.choice)) open.push_back(sequence.get());
  }
  std::vector<Update> updates;
  for (Sequence* sequence : open) {
    updates.push_back(update_of(*sequence));
    end(*sequence, FinishReason::kAbort, updates.back());
    settle(*sequence);
  }
  return updates;
}

std::optional<Batch> Scheduler::next() {
  OCTAVO_CHECK(steps_in_flight() < options_.most_steps());
  take_from_disk();
  Plan plan{BatchBuilder(prefixes_.plan(), options_.predicts),
            {},
            options_.step_rows(),
            options_.step_rows()};
  if (suspects_.empty()) {
    if (!pipelined() && !choose_drafts(plan)) return std::nullopt;
    encode_images(plan);
    plan_step(plan);
  } else if (!pipelined() || steps_.empty()) {
    encode_images(plan);
    plan_suspect(plan);
  }
  encode_images(plan);  // of sequences that this step has admitted
  if (plan.step.entries.empty() && plan.image_work.empty()) return std::nullopt;
  plan.batch.work_on_images(std::move(plan.image_work));
  if (options_.adapter_slots > 0) plan.batch.load_adapters(adapter_slots_.take_loads());
  steps_.push_back(std::move(plan.step));
  ++stats_.steps;
  return plan.batch.build();
}

std::vector<Sequence*> Scheduler::decoding() const {
  std::vector<Sequence*> found;
  for (const auto& [rank, sequence] : running_) {
    if (rank.background && !found.empty() && !found.back()->request().background) break;
    if (sequence->is_decoding() && !sequence->preempted) found.push_back(sequence);
  }
  return found;
}

bool Scheduler::choose_drafts(Plan& plan) {
  const auto sequences = decoding();
  if (steps_.empty()) {
    // Drafts must not keep an image that runs in one step from fitting.
    const bool needs_room = options_.images.sees_block && !wanted_images().empty();
    if (!needs_room) plan.drafts = speculator_.drafts_for(sequences);
    return true;
  }
  // A sequence with drafts cannot continue until they are verified, and the others wait with it:
  // separate steps would each read all weights for only some of the sequences.
  return !steps_.back().has_drafts && !speculator_.is_worth_waiting(sequences);
}

void Scheduler::plan_step(Plan& plan) {
  plan_running(plan);
  plan_waiting(plan);
  plan.step.shares.rows = options_.step_rows() - plan.left;
  // Ranks are ordered, so the last sequence is a background one if any is.
  if (sequences_.empty() || !sequences_.rbegin()->first.background) return;
  plan.background = true;
  if (!limit_background(plan)) return;
  const int left = plan.left;
  plan_running(plan);
  plan_waiting(plan);
  plan.step.shares.background_rows = left - plan.left;
}

std::vector<Sequence*> Scheduler::running_in_order() const {
  std::vector<Sequence*> in_order;
  for (const auto& [rank, sequence] : running_) in_order.push_back(sequence);
  return in_order;
}

void Scheduler::plan_running(Plan& plan) {
  auto in_order = running_in_order();  // make_room() may remove sequences from running_
  std::erase_if(in_order, [&](const Sequence* sequence) {
    return sequence->request().background != plan.background;
  });
  if (pipelined()) {
    plan_group(plan);
    std::erase_if(in_order, [](const Sequence* sequence) { return sequence->is_decoding(); });
  }
  for (const bool decoding : {true, false}) {
    for (Sequence* sequence : in_order) {
      if (!running_.contains(rank_of(*sequence)) || sequence->preempted) continue;
      if (sequence->is_decoding() == decoding) plan_rows(*sequence, plan);
    }
  }
}

void Scheduler::reset_prefix_cache() {
  // The disk first: it reports nothing once it is being cleared, and the index reports the end.
  if (disk_ != nullptr) disk_->clear();
  prefixes_.index().clear();
}

void Scheduler::plan_suspect(Plan& plan) {
  Sequence& sequence = *suspects_.front();
  if (waiting_.contains(rank_of(sequence))) {
    free_slot_for(sequence, /*only_background=*/false);
    if (!admit(sequence)) return;
  }
  if (!sequence.preempted) plan_rows(sequence, plan);
}

bool Scheduler::plan_drafts(Sequence& sequence, Plan& plan) {
  const auto found = plan.drafts.find(&sequence);
  // A preempted sequence may have been admitted again and have rows to compute first. The last row of a
  // prompt may be an image's.
  if (found == plan.drafts.end() || !sequence.is_decoding() || sequence.next_image() != nullptr)
    return false;
  std::vector<TokenId> drafts = std::move(found->second);
  plan.drafts.erase(found);  // if they do not fit, the sequence may be planned again without them
  const auto count = static_cast<int>(drafts.size());
  // Drafts never preempt a sequence.
  if (1 + count > plan.budget) return false;
  if (!sequence.cache().grow_to(sequence.known() + count, count)) return false;
  const int start = sequence.computed();
  const int first_row = plan.batch.rows();
  const int drawn = sequence.add_drafts(plan.batch, std::move(drafts));
  place_images(sequence, first_row, start, plan);
  plan.step.entries.push_back({&sequence, start, 1 + count, drawn, 0, 0, count});
  plan.step.has_drafts = true;
  plan.take_rows(1 + count);
  sequence.newest_step = stats_.steps;
  sequence.publish(/*in_step=*/true);
  stats_.decode_tokens += static_cast<uint64_t>(1 + count);
  return true;
}

int Scheduler::rows_that_fit(const Sequence& sequence, const Plan& plan) const {
  const int rows = rows_now(sequence);
  if (!options_.whole_prompts) return std::min(rows, plan.budget);
  if (rows <= plan.budget) return rows;
  // The limit of background rows would never let a long prompt fit.
  const bool exceeds = plan.beside_others && stats_.steps % kStepsPerExceedingPrompt == 0;
  return exceeds && rows <= plan.left ? rows : 0;
}

bool Scheduler::plan_rows(Sequence& sequence, Plan& plan) {
  if (plan_drafts(sequence, plan)) return true;
  int rows = sequence.rows_of_one_step(rows_that_fit(sequence, plan));
  if (options_.images.enabled) rows = rows_with_images(sequence, rows, plan);
  if (rows <= 0 || !make_room(sequence, sequence.computed() + rows)) return false;
  const bool decoding = sequence.is_decoding();
  const int start = sequence.computed();
  const int asked = plan.batch.prompt_logprob_rows();
  const int hidden = plan.batch.hidden_rows();
  const int first_row = plan.batch.rows();
  const int drawn = sequence.add_rows(plan.batch, rows);
  place_images(sequence, first_row, start, plan);
  plan.step.entries.push_back({&sequence, start, rows, drawn,
                               plan.batch.prompt_logprob_rows() - asked,
                               plan.batch.hidden_rows() - hidden});
  plan.take_rows(rows);
  sequence.newest_step = stats_.steps;
  // Steps run in order, and within a step all K and V are written before any are read, so other
  // sequences may share these pages from this step on.
  sequence.publish(/*in_step=*/true);
  if (!decoding && !plan.background) plan.step.shares.prefills = true;
  (decoding ? stats_.decode_tokens : stats_.prompt_tokens) += static_cast<uint64_t>(rows);
  return true;
}

bool Scheduler::make_room(Sequence& sequence, int tokens) {
  const bool comes_first = !suspects_.empty();
  while (!sequence.cache().grow_to(tokens)) {
    // A step in flight still uses the pages of preempted sequences: wait for it.
    if (releasing_ > 0) return false;
    const auto last = std::find_if(running_.rbegin(), running_.rend(), [&](const auto& entry) {
      return entry.second != &sequence && (comes_first || rank_of(sequence) < entry.first);
    });
    // Higher-ranked sequences continue; this one waits for their pages.
    if (last == running_.rend()) return false;
    preempt(*last->second);
  }
  return true;
}

void Scheduler::preempt(Sequence& sequence) {
  ++stats_.preemptions;
  sequence.preempted = true;
  if (sequence.steps_in_flight == 0) {
    requeue(sequence);
  } else {
    ++releasing_;
  }
}

void Scheduler::requeue(Sequence& sequence) {
  const Rank rank = rank_of(sequence);
  running_.erase(rank);
  sequence.restart();
  sequence.asked_disk = false;
  sequence.recomputes = true;
  waiting_[rank] = &sequence;
}

void Scheduler::step_took(double seconds) {
  OCTAVO_CHECK(!steps_.empty());
  // The time of a piece of an image says nothing about the rows.
  if (steps_.front().image.empty()) background_rows_.observe(steps_.front().shares, seconds);
}

std::vector<Update> Scheduler::commit(const StepResult& result) {
  OCTAVO_CHECK(!steps_.empty());
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  std::vector<Update> updates;
  StepReader reader(result);
  for (const StepEntry& entry : step.entries) {
    entry.sequence->take_step(entry.start + entry.rows);
    Update update = update_of(*entry.sequence);
    take_results(entry, reader, update);
    if (says_something(update)) updates.push_back(std::move(update));
    settle(*entry.sequence);
  }
  return updates;
}

void Scheduler::take_results(const StepEntry& entry, StepReader& reader, Update& update) {
  Sequence& sequence = *entry.sequence;
  if (sequence.finished) {
    reader.skip(entry);
    return;
  }
  const int accepted = reader.read(entry, update);
  if (entry.drafts > 0) {
    sequence.keep_right_drafts(entry.start);
    speculator_.observe(sequence, entry.drafts, accepted, stats_);
  }
  stats_.generated_tokens += update.tokens.size();
  if (!update.tokens.empty()) {
    sequence.recomputes = false;
    if (std::exchange(sequence.failed_before, false)) std::erase(suspects_, &sequence);
  }
  if (update.finish) end(sequence, *update.finish, update);
}

void Scheduler::end(Sequence& sequence, FinishReason reason, Update& update) {
  update.finish = reason;
  sequence.finished = true;
  turns_of(sequence).leave(sequence.request().owner, sequence.call(), sequence.turn);
  speculator_.forget(sequence);
  sequence.release_masks();
  if (sequence.choice() == 0 && sequence.cached_tokens && !options_.whole_prompts)
    remember(sequence);
  const Rank rank = rank_of(sequence);
  running_.erase(rank);
  waiting_.erase(rank);
  restoring_.erase(rank);
  std::erase(suspects_, &sequence);
  if (std::exchange(sequence.preempted, false)) --releasing_;
}

void Scheduler::remember(const Sequence& sequence) {
  std::vector<TokenId> room;
  history_.remember(history_tokens(sequence, room), owner_of(sequence));
}

void Scheduler::settle(Sequence& sequence) {
  sequence.publish(/*in_step=*/false);
  if (disk_ != nullptr) sequence.save(*disk_);
  if (sequence.steps_in_flight == 0 && sequence.finished) {
    sequences_.erase(rank_of(sequence));
  } else if (sequence.steps_in_flight == 0 && sequence.preempted) {
    --releasing_;
    requeue(sequence);
  } else {
    sequence.cache().release_behind(sequence.complete());
  }
}

void Scheduler::release_masks() {
  for (const Step& step : steps_)
    for (const StepEntry& entry : step.entries) entry.sequence->release_masks();
}

std::vector<Update> Scheduler::fail(const std::string& reason) {
  ++stats_.failed_steps;
  std::vector<Sequence*> involved;
  for (const Step& step : steps_) {
    for (const StepEntry& entry : step.entries) {
      if (std::ranges::find(involved, entry.sequence) == involved.end())
        involved.push_back(entry.sequence);
      entry.sequence->cache().retract(entry.start);
      entry.sequence->steps_in_flight = 0;
    }
    for (Sequence* sequence : waiting_for_image(step))
      if (std::ranges::find(involved, sequence) == involved.end()) involved.push_back(sequence);
  }
  steps_.clear();
  releasing_ = 0;
  // The suspects get the whole pool.
  while (!running_.empty()) requeue(*running_.begin()->second);

  std::vector<Update> updates;
  for (Sequence* sequence : involved) {
    if (!sequence->finished && sequence->failed_before) {
      updates.push_back(update_of(*sequence));
      updates.back().error = reason;
      end(*sequence, FinishReason::kError, updates.back());
    }
    if (sequence->finished) {
      sequences_.erase(rank_of(*sequence));
    } else {
      sequence->failed_before = true;
      suspects_.push_back(sequence);
    }
  }
  adapter_slots_.forget();  // a failed step may not have written its adapters
  image_store_.forget();
  return updates;
}

AdapterUse Scheduler::adapter_use() const {
  AdapterUse use{.slots = options_.adapter_slots};
  if (use.slots == 0) return use;
  for (const auto& [rank, sequence] : sequences_) {
    if (sequence->finished || !sequence->request().adapter) continue;
    (running_.contains(rank) ? use.running : use.waiting)
        .push_back(sequence->request().adapter->name());
  }
  for (auto* names : {&use.running, &use.waiting}) {
    std::ranges::sort(*names);
    names->erase(std::ranges::unique(*names).begin(), names->end());
  }
  return use;
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = stats_;
  stats.running = static_cast<int>(running_.size());
  stats.waiting = static_cast<int>(waiting_.size() + restoring_.size());
  stats.images_encoded = image_store_.encoded();
  stats.takes_images = options_.images.enabled;
  if (disk_ != nullptr) stats.disk = disk_->stats();
  stats.steps_in_flight = static_cast<int>(steps_.size());
  return stats;
}

}  // namespace octavo
