#include "scheduler_fuzz/round.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "scheduler_fuzz/batch_checks.h"
#include "scheduler_fuzz/batch_hash.h"
#include "scheduler_fuzz/images.h"

namespace octavo {

FuzzRound::FuzzRound(RandomDraws& draws, const FuzzOptions& options, FuzzTotals& totals)
    : draws_(draws),
      totals_(totals),
      settings_(random_settings(draws, options.stages)),
      pool_(settings_.plan.pages_held(options_.max_model_len, options_.max_num_batched_tokens) +
            draw(0, chance(50) ? 4 : 20)),
      prefixes_(settings_.plan, pool_, options.hash_bits),
      model_(settings_.plan, kFuzzVocab),
      runner_(model_, pool_.page_count()),
      tier_(random_disk_tier(draws, settings_, options.disk, runner_.bytes_per_page())),
      disk_(tier_ ? std::make_unique<PrefixDisk>(prefixes_, *tier_, runner_) : nullptr),
      scheduler_(options_, prefixes_, disk_.get(), random_drafter(draws, options_, model_)),
      invariants_(settings_.plan, pool_, prefixes_, runner_, requests_.effects_of_adapters(),
                  &fuzz_seen_block) {
  if (options_.pipeline_stages > 1) runner_.fails_in_order = chance(70);
  runner_.images().pieces = settings_.pieces;
}

void FuzzRound::run(int operations) {
  for (int i = 0; i < operations; ++i) {
    operation();
    check();
    ++totals_.operations;
  }
  run_dry();
  add_to_totals();
}

void FuzzRound::add_to_totals() {
  const SchedulerStats stats = scheduler_.stats();
  totals_.steps += stats.steps;
  totals_.preemptions += stats.preemptions;
  totals_.hits += stats.prefix_hits;
  totals_.failed_steps += stats.failed_steps;
  totals_.drafts += stats.drafts;
  totals_.draft_tokens += stats.draft_tokens;
  totals_.accepted += stats.accepted_tokens;
  if (settings_.plan.state) totals_.accepted_with_state += stats.accepted_tokens;
  totals_.restored += stats.disk.restored_tokens;
  totals_.corrupt += stats.disk.corrupt;
  totals_.images_encoded += stats.images_encoded;
  totals_.image_hits += stats.image_hits;
}

void FuzzRound::operation() {
  const int what = draw(1, 100);
  if (what <= 12 && answers_.asked().size() < 40) {
    // Reads from disk and priorities change the order.
    const bool ordered = options_.policy == SchedulingPolicy::kFcfs && disk_ == nullptr;
    if (ordered && chance(5)) {
      add_race();
    } else {
      add(requests_.next(), {});
    }
  } else if (what <= 15 && !answers_.asked().empty()) {
    abort();
  } else if (what == 16 && chance(20)) {
    scheduler_.reset_prefix_cache();
  } else if (what == 17 && chance(20)) {
    runner_.fail_starts = draw(1, 2);
  } else if (what <= 60) {
    start();
  } else {
    finish();
  }
}

void FuzzRound::add(Request request, AdmissionOrder::Arrival arrival) {
  arrival.background = request.background;
  AskedRequest asked{.request = {}, .arrival = arrival, .answers = oracle_.begin(request)};
  if (request.pooling == Pooling::kNone && chance(20))
    oracle_.resume(draws_, request, asked.answers);
  asked.request = request;
  validate(request, {.max_model_len = options_.max_model_len,
                     .vocab = kFuzzVocab,
                     .max_image_tokens = options_.images.max_image_tokens,
                     .max_whole_prompt = options_.longest_whole_prompt()});
  const RequestId id = next_id_++;
  answers_.add(id, std::move(asked));
  scheduler_.add(id, std::move(request));
}

void FuzzRound::add_race() {
  const uint64_t call = requests_.new_call();
  const int race = admissions_.start_race();
  const auto enter = [&](const std::string& owner, uint64_t of_call,
                         AdmissionOrder::Arrival arrival) {
    Request request = requests_.next();
    request.n = 1;
    request.background = false;
    request.adapter = nullptr;  // its slot may come later than others'
    request.owner = owner;
    request.call = of_call;
    add(std::move(request), arrival);
  };
  enter("a", call, {});
  const int tail = draw(1, 8);
  for (int i = 0; i < tail; ++i) enter("a", call, {.race = race});
  enter(fmt::format("newcomer {}", race), 0, {.race = race, .newcomer = true});
}

void FuzzRound::abort() {
  auto it = answers_.asked().begin();
  std::advance(it, draw(0, static_cast<int>(answers_.asked().size()) - 1));
  const RequestId id = it->first;
  const size_t choices = it->second.answers.size();
  if (choices > 1 && chance(60)) return abort_choice(id, draw(0, static_cast<int>(choices) - 1));
  answers_.take(scheduler_.abort(id));
  OCTAVO_CHECK(!answers_.asked().contains(id));
}

// The choice may have ended before.
void FuzzRound::abort_choice(RequestId id, int choice) {
  ++totals_.choices_aborted;
  answers_.take(scheduler_.abort(id, choice));
  const auto& asked = answers_.asked();
  OCTAVO_CHECK(!asked.contains(id) || asked.at(id).answers[static_cast<size_t>(choice)].ended);
}

void FuzzRound::start() {
  if (full()) return;
  const auto batch = scheduler_.next();
  if (!batch) {
    // With nothing in flight, only disk reads can be waited for.
    OCTAVO_CHECK(!runner_.in_flight().empty() || scheduler_.idle() || scheduler_.waits_for_disk());
    return;
  }
  OCTAVO_CHECK(batch->rows() > 0 || !batch->image_work.empty());
  OCTAVO_CHECK(batch->rows() <= options_.step_rows());
  check_positions(*batch, options_.whole_prompts);
  OCTAVO_CHECK(batch->sequences() <= options_.max_num_seqs);
  answers_.check_types(*batch);
  OCTAVO_CHECK(options_.pipeline_stages == 1 || !refers_to_earlier_step(*batch));
  totals_.fingerprint = fake_mix(totals_.fingerprint, hash_of_decisions(*batch));
  totals_.most_in_flight = std::max(totals_.most_in_flight, runner_.in_flight().size() + 1);
  step_rows_.push_back(batch->rows());
  for (const int slot : batch->adapter_slots) OCTAVO_CHECK(slot < options_.adapter_slots);
  totals_.adapter_loads += static_cast<int64_t>(batch->adapter_loads.size());
  runner_.start(*batch);
}

void FuzzRound::finish() {
  if (runner_.in_flight().empty()) return;
  try {
    const StepResult result = runner_.finish();
    scheduler_.step_took(1 + 0.01 * draw(0, 30) * step_rows_.front());
    step_rows_.pop_front();
    answers_.take(scheduler_.commit(result));
  } catch (const std::runtime_error& error) {
    scheduler_.release_masks();
    runner_.drop();
    step_rows_.clear();
    answers_.take(scheduler_.fail(error.what()));
  }
}

void FuzzRound::run_dry() {
  runner_.fail_starts = 0;
  int64_t bound = 100;
  for (const auto& [id, asked] : answers_.asked())
    bound += 40ll * asked.request.n * (options_.max_model_len + asked.request.max_tokens) +
             200ll * asked.request.n * settings_.pieces *
                 static_cast<int64_t>(asked.request.images.size());
  for (int64_t steps = 0; !scheduler_.idle(); ++steps) {
    if (scheduler_.waits_for_disk()) --steps;
    OCTAVO_CHECK(steps < bound);  // no livelock
    start();
    if (chance(70) || full()) finish();
    check();
  }
  OCTAVO_CHECK(answers_.asked().empty());
  // A request that is read from disk is overtaken.
  if (disk_ == nullptr) admissions_.check_background();
  OCTAVO_CHECK(pool_.referenced_pages() == 0);
  prefixes_.index().clear();  // keeps the pages on disk
  OCTAVO_CHECK(pool_.free_pages() == pool_.page_count());
  OCTAVO_CHECK(prefixes_.index().nodes() == 1);
}

void FuzzRound::check() {
  invariants_.check();
  // No page is held after all requests have ended.
  if (scheduler_.idle()) OCTAVO_CHECK(pool_.referenced_pages() == 0);
  OCTAVO_CHECK(scheduler_.stats().running <= options_.max_num_seqs);
}

}  // namespace octavo
