// Runs random requests, aborts, failures and steps against the scheduler, the prefix cache and the
// page pool, over a model whose answers change if a page is used by the wrong sequence.
//
// usage: scheduler_fuzz [--operations 1000000] [--seed 1] [--hash-bits 64] [--stages 1] [--disk FOLDER]
//
// After every operation the invariants of the pool and the scheduler hold; every answer equals the
// one computed from its tokens alone. A new owner's request is admitted before the tail of a call
// that arrived with it, and no background request before another one that arrived earlier. Pools,
// budgets, windows and policies change every few thousand operations. With several pipeline stages,
// one step per stage and one more are in flight, and no step refers to tokens of another. In some rounds
// the model is an encoder, so that prompts run whole and requests pool. With a folder, the pool has a disk tier, whose pages persist across rounds.
//
// Prints one JSON line; aborts on a violation. "fingerprint" is a hash of all steps: without a disk
// tier, equal arguments give equal fingerprints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>

#include "scheduler/mtp_drafter.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_drafter.h"
#include "scheduler/testing/toy_constraint.h"
#include "support/batch_checks.h"
#include "support/fuzz_images.h"
#include "support/page_invariants.h"
#include "support/random_draws.h"

namespace octavo {
namespace {

struct Options {
  int64_t operations = 1000000;
  unsigned seed = 1;
  int hash_bits = 64;
  int stages = 1;
  std::string disk;
};

struct Totals {
  int64_t operations = 0, requests = 0, finished = 0, aborted = 0, errors = 0, tokens = 0,
          pooled = 0, constrained = 0, races = 0, resumed = 0, background = 0, adapted = 0,
          adapter_loads = 0, images = 0, whole = 0;
  uint64_t steps = 0, preemptions = 0, hits = 0, failed_steps = 0, drafts = 0, draft_tokens = 0,
           accepted = 0, accepted_with_state = 0, restored = 0, corrupt = 0, fingerprint = 0,
           images_encoded = 0, image_hits = 0;
  size_t most_in_flight = 0;
};

constexpr int kVocab = 13;
constexpr int kOperationsPerRound = 4000;
constexpr int kMostDrafts = 8;
constexpr int kAdapters = 5;

// One pool and one scheduler with random settings, driven for its share of operations, then until
// idle.
class Round {
 public:
  Round(std::mt19937& random, const Options& options, Totals& totals)
      : draws_(random),
        totals_(totals),
        plan_(random_plan()),
        options_(random_options(options.stages)),
        pool_(plan_.pages_held(options_.max_model_len, options_.max_num_batched_tokens) +
              draw(0, chance(50) ? 4 : 20)),
        prefixes_(plan_, pool_, options.hash_bits),
        model_(plan_, kVocab),
        runner_(model_, pool_.page_count()),
        tier_(make_tier(options.disk)),
        disk_(tier_ ? std::make_unique<PrefixDisk>(prefixes_, *tier_, runner_) : nullptr),
        scheduler_(options_, prefixes_, disk_.get(), random_drafter()) {
    if (options_.pipeline_stages > 1) runner_.fails_in_order = chance(70);
    runner_.images().pieces = pieces_;
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      operation();
      check();
      ++totals_.operations;
    }
    run_dry();
    const SchedulerStats stats = scheduler_.stats();
    totals_.steps += stats.steps;
    totals_.preemptions += stats.preemptions;
    totals_.hits += stats.prefix_hits;
    totals_.failed_steps += stats.failed_steps;
    totals_.drafts += stats.drafts;
    totals_.draft_tokens += stats.draft_tokens;
    totals_.accepted += stats.accepted_tokens;
    if (plan_.state) totals_.accepted_with_state += stats.accepted_tokens;
    totals_.restored += stats.disk.restored_tokens;
    totals_.corrupt += stats.disk.corrupt;
    totals_.images_encoded += stats.images_encoded;
    totals_.image_hits += stats.image_hits;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Answer {
    std::vector<TokenId> tokens;  // prompt included
    RowSampling sampling;
    std::unique_ptr<ConstraintState> state;  // with a constraint
    bool ended = false;
  };
  struct Asked {
    Request request;
    std::vector<Answer> answers;
    int prompt_logprobs = 0;
    int race = -1;
    bool newcomer = false;
    Time arrival = std::chrono::steady_clock::now();
  };
  // How long a request that is not a background one waited.
  struct Wait {
    Time from, to;
  };
  // A call of several requests, and one request of another owner that arrived after it.
  struct Race {
    std::optional<Time> newcomer = {};  // when it was admitted
    std::optional<Time> tail = {};      // when the first of the call's later requests was
  };

  int draw(int low, int high) { return draws_.draw(low, high); }
  bool chance(int percent) { return draws_.chance(percent); }

  // Rounds with the same plan find each other's pages.
  std::unique_ptr<DiskTier> make_tier(const std::string& folder) {
    if (folder.empty() || !options_.enable_prefix_caching) return nullptr;
    std::string fingerprint;
    for (const CacheGroup& group : plan_.groups)
      fingerprint += fmt::format("{} {},", group.block_tokens, group.spec.window);
    fingerprint += fmt::format("state {}", plan_.state_pages());
    const uint64_t slot = 4096 + 128;
    return std::make_unique<DiskTier>(DiskTierOptions{
        .store = {.folder = folder,
                  .fingerprint = fingerprint,
                  .page_bytes = runner_.bytes_per_page(),
                  .most_bytes = (20 + static_cast<uint64_t>(draw(0, 400))) * slot},
        .staging_bytes = static_cast<uint64_t>(draw(1, 40)) * runner_.bytes_per_page()});
  }

  CachePlan random_plan() {
    SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
    SoftmaxSpec window = full;
    window.window = draw(2, 30);  // a cell needs the previous one
    SoftmaxSpec narrow = window;  // pages with twice the tokens
    narrow.k_dim = narrow.v_dim = 4;
    std::vector<CacheSpec> layers = {full};
    if (chance(40)) layers.push_back(window);
    if (chance(20)) layers.push_back(narrow);
    if (chance(20)) layers.erase(layers.begin());
    if (layers.empty()) layers = {window};
    const StateSpec state{
        .heads = draw(1, 3), .k_dim = 8, .v_dim = 8, .conv_rows = 3, .conv_channels = 24};
    if (chance(40)) layers.insert(layers.end(), static_cast<size_t>(draw(1, 4)), state);
    CachePlan plan = plan_cache(layers, 8);
    plan.state_drafts = plan.state ? kMostDrafts : 0;
    return plan;
  }

  SchedulerOptions random_options(int stages) {
    SchedulerOptions options{
        .max_num_seqs = draw(1, 12),
        .max_num_batched_tokens = chance(20) ? draw(1, 4) : draw(4, 60),
        .max_model_len = draw(20, 100),
        .vocab = kVocab,
        .stop_token_ids = {3},
        .policy = chance(50) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs,
        .enable_prefix_caching = chance(80),
        .speculation = {.most_drafts = draw(1, kMostDrafts), .most_rows = draw(1, 60)},
        .predicts = chance(20),
        .adapter_slots = chance(50) ? draw(1, 3) : 0,
        .pipeline_stages = stages};
    if (stages > 1) options.adapter_slots = 0;
    if (stages == 1 && !plan_.state && chance(25)) return encoder_options(options);
    if (stages == 1 && chance(60))
      options.images = random_images(draws_, options, plan_.state.has_value(), pieces_);
    return options;
  }

  static SchedulerOptions encoder_options(SchedulerOptions options) {
    options.whole_prompts = true;
    options.enable_prefix_caching = false;
    options.predicts = false;
    options.adapter_slots = 0;
    return options;
  }

  // Correct and wrong drafts.
  std::unique_ptr<Drafter> random_drafter() {
    if (options_.predicts) return std::make_unique<MtpDrafter>();
    if (options_.whole_prompts || chance(20)) return nullptr;
    return std::make_unique<FakeDrafter>(
        model_, FakeDrafter::Options{.vocab = kVocab,
                                     .right_percent = draw(0, 100),
                                     .silent_percent = draw(0, 60),
                                     .seed = static_cast<unsigned>(draws_.number())});
  }

  void operation() {
    const int what = draw(1, 100);
    if (what <= 12 && asked_.size() < 40) {
      // Reads from disk and priorities change the order.
      const bool ordered = options_.policy == SchedulingPolicy::kFcfs && disk_ == nullptr;
      if (ordered && chance(5)) {
        add_race();
      } else {
        add(random_request());
      }
    } else if (what <= 15 && !asked_.empty()) {
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

  void add_race() {
    const auto race = static_cast<int>(races_.size());
    races_.emplace_back();
    const uint64_t call = next_call_++;
    const auto enter = [&](const std::string& owner, uint64_t of_call) -> Asked& {
      Request request = random_request();
      request.n = 1;
      request.background = false;
      request.adapter = nullptr;  // its slot may come later than others'
      request.owner = owner;
      request.call = of_call;
      return add(std::move(request));
    };
    enter("a", call);
    const int tail = draw(1, 8);
    for (int i = 0; i < tail; ++i) enter("a", call).race = race;
    Asked& newcomer = enter(fmt::format("newcomer {}", race), 0);
    newcomer.race = race;
    newcomer.newcomer = true;
    ++totals_.races;
  }

  void note_admission(const Asked& asked, Time time) {
    if (asked.request.background) {
      background_admissions_.push_back(time);
      ++totals_.background;
    } else {
      waits_.push_back({asked.arrival, time});
    }
    if (asked.race < 0) return;
    Race& race = races_[static_cast<size_t>(asked.race)];
    if (asked.newcomer) {
      race.newcomer = std::min(race.newcomer.value_or(time), time);
    } else {
      race.tail = std::min(race.tail.value_or(time), time);
    }
    if (race.newcomer && race.tail) OCTAVO_CHECK(*race.newcomer <= *race.tail);
  }

  Request random_request() {
    Request request;
    // Few prefixes, so that many prompts share one.
    const int length = draw(
        1, options_.whole_prompts ? options_.longest_whole_prompt() : options_.max_model_len - 1);
    const int shared = draw(0, length);
    const auto family = static_cast<unsigned>(draw(0, 3));
    for (int i = 0; i < length; ++i) {
      request.prompt.push_back(
          i < shared ? static_cast<TokenId>((family * 7 + static_cast<unsigned>(i)) % kVocab)
                     : draw(0, kVocab - 1));
    }
    request.n = chance(15) && !options_.whole_prompts ? draw(2, 4) : 1;
    request.max_tokens = draw(1, 80);
    if (chance(20)) request.min_tokens = draw(0, request.max_tokens);
    if (chance(20)) request.stop_token_ids = {draw(0, kVocab - 1)};
    request.ignore_eos = chance(60);
    request.priority = draw(-1, 1);
    request.background = chance(25);
    if (chance(20)) request.cache_salt = chance(50) ? "a" : "b";
    if (chance(50)) request.owner = chance(50) ? "a" : "b";
    // Some requests are part of one of the last calls.
    if (chance(40)) request.call = next_call_ - static_cast<uint64_t>(draw(1, 3));
    if (chance(20)) ++next_call_;
    if (chance(20)) request.cache_namespace[0] = 1;
    if (options_.adapter_slots > 0 && chance(70))
      request.adapter = adapters_[static_cast<size_t>(draw(0, kAdapters - 1))];
    if (chance(50)) request.sampling.temperature = 1;
    request.sampling.seed = draws_.number();
    if (chance(10)) request.sampling.prompt_logprobs = 0;
    if (chance(15)) request.sampling.repetition_penalty = 2;
    if (chance(15)) request.sampling.logprobs = 0;
    request.hash_logits = chance(15);
    if (options_.images.enabled && chance(60))
      totals_.images += add_random_images(draws_, options_.images, request);
    if (request.n == 1 && request.images.empty() && (options_.whole_prompts || chance(20)))
      request.pooling = std::array{Pooling::kMean, Pooling::kLast,
                                   Pooling::kFirst}[static_cast<size_t>(draw(0, 2))];
    if (options_.whole_prompts && length > 1 && chance(40))
      request.second_text = draw(1, length - 1);
    if (request.pooling == Pooling::kNone && chance(35)) {
      request.constraint = std::make_shared<ToyConstraint>(
          ToyRules{.vocab = kVocab, .stop = 3, .length = draw(1, 50), .closed = chance(80)});
    }
    return request;
  }

  Asked& add(Request request) {
    const RequestId id = next_id_++;
    Asked& asked = asked_[id];
    asked.request = request;
    for (int choice = 0; choice < request.n; ++choice)
      asked.answers.push_back({request.prompt, sampling_of(request, choice),
                               request.constraint ? request.constraint->begin() : nullptr});
    if (request.pooling == Pooling::kNone && chance(20)) resume(asked, request);
    validate(request, {.max_model_len = options_.max_model_len,
                       .vocab = kVocab,
                       .max_image_tokens = options_.images.max_image_tokens,
                       .max_whole_prompt = options_.longest_whole_prompt()});
    scheduler_.add(id, std::move(request));
    ++totals_.requests;
    totals_.adapted += asked.request.adapter != nullptr;
    return asked;
  }

  // An earlier attempt generated some tokens of each choice.
  void resume(Asked& asked, Request& request) {
    std::vector<ResumedOutput> resumed;
    for (Answer& answer : asked.answers) {
      ResumedOutput& output = resumed.emplace_back();
      for (int left = draw(0, request.max_tokens); left > 0 && !output.finished; --left) {
        const TokenId token = expected_token(answer, request);
        if (answer.state && answer.sampling.mask->allows_nothing()) break;
        take_token(answer, token);
        output.tokens.push_back(token);
        output.finished = (token == 3 && !request.ignore_eos) ||
                          std::ranges::count(request.stop_token_ids, token) > 0 ||
                          static_cast<int>(output.tokens.size()) == request.max_tokens ||
                          static_cast<int>(answer.tokens.size()) == options_.max_model_len;
      }
    }
    // Something must be left to do.
    resumed.front().finished = false;
    Answer& first = asked.answers.front();
    while (!resumed.front().tokens.empty()) {
      resumed.front().tokens.pop_back();
      first.tokens.pop_back();
      if (first.state) first.state->take_back(1);
      if (chance(50)) break;
    }
    for (size_t i = 0; i < resumed.size(); ++i) asked.answers[i].ended = resumed[i].finished;
    request.resumed = std::move(resumed);
    asked.request = request;
    ++totals_.resumed;
  }

  TokenId expected_token(Answer& answer, const Request& request) const {
    answer.sampling.position = static_cast<uint32_t>(answer.tokens.size());
    if (answer.state) answer.sampling.mask = mask_of(*answer.state);
    return model_.next_token(answer.tokens, answer.sampling, request.adapter.get(), request.images);
  }
  static void take_token(Answer& answer, TokenId token) {
    if (answer.state) OCTAVO_CHECK(answer.state->accept(token));
    answer.tokens.push_back(token);
  }

  // For the oracle; the position is set for each token.
  RowSampling sampling_of(const Request& request, int choice) const {
    RowSampling sampling{.temperature = request.sampling.temperature,
                         .seed = request.sampling.seed,
                         .choice = static_cast<uint32_t>(choice)};
    if (request.min_tokens > 0 || request.sampling.repetition_penalty != 1) {
      LogitRules rules{.repetition_penalty = request.sampling.repetition_penalty,
                       .min_tokens = request.min_tokens};
      if (!request.ignore_eos) rules.held_back = options_.stop_token_ids;
      rules.held_back.insert(rules.held_back.end(), request.stop_token_ids.begin(),
                             request.stop_token_ids.end());
      sampling.rules = std::make_shared<const LogitRules>(std::move(rules));
      sampling.history.prompt = static_cast<int32_t>(request.prompt.size());
    }
    return sampling;
  }

  void abort() {
    auto it = asked_.begin();
    std::advance(it, draw(0, static_cast<int>(asked_.size()) - 1));
    const RequestId id = it->first;
    take(scheduler_.abort(id));
    OCTAVO_CHECK(!asked_.contains(id));
  }

  bool full() const {
    return static_cast<int>(runner_.in_flight().size()) == options_.most_steps();
  }

  // A hash of everything that depends on the scheduler's decisions.
  static uint64_t fingerprint_of(const Batch& batch) {
    uint64_t hash = 0;
    const auto add = [&](const auto& numbers) {
      for (const auto number : numbers) hash = fake_mix(hash, static_cast<uint64_t>(number));
      hash = fake_mix(hash, numbers.size());
    };
    for (const auto* numbers :
         {&batch.tokens, &batch.token_sources, &batch.positions, &batch.cu_seqlens_q,
          &batch.logit_rows, &batch.hidden_rows, &batch.next_sources, &batch.adapter_slots})
      add(*numbers);
    for (const BlockTable& table : batch.block_tables) add(table.pages);
    add(batch.rope_positions);
    add(batch.last_visible);
    add(batch.token_types);
    add(batch.image_work.drops);
    hash = fake_mix(hash, batch.image_work.encodes);
    return hash;
  }

  void start() {
    if (full()) return;
    const auto batch = scheduler_.next();
    if (!batch) {
      // With nothing in flight, only disk reads can be waited for.
      OCTAVO_CHECK(!runner_.in_flight().empty() || scheduler_.idle() ||
                   scheduler_.waits_for_disk());
      return;
    }
    OCTAVO_CHECK(batch->rows() > 0 || !batch->image_work.empty());
    OCTAVO_CHECK(batch->rows() <= options_.step_rows());
    check_positions(*batch, options_.whole_prompts);
    OCTAVO_CHECK(batch->sequences() <= options_.max_num_seqs);
    check_types(*batch);
    OCTAVO_CHECK(options_.pipeline_stages == 1 || !refers_to_earlier_step(*batch));
    totals_.fingerprint = fake_mix(totals_.fingerprint, fingerprint_of(*batch));
    totals_.most_in_flight = std::max(totals_.most_in_flight, runner_.in_flight().size() + 1);
    step_rows_.push_back(batch->rows());
    for (const int slot : batch->adapter_slots) OCTAVO_CHECK(slot < options_.adapter_slots);
    totals_.adapter_loads += static_cast<int64_t>(batch->adapter_loads.size());
    runner_.start(*batch);
  }

  // The types of a prompt's rows are those of one request with its tokens.
  void check_types(const Batch& batch) const {
    if (!options_.whole_prompts) OCTAVO_CHECK(batch.token_types.empty());
    for (size_t s = 0; options_.whole_prompts && s + 1 < batch.cu_seqlens_q.size(); ++s) {
      const auto begin = static_cast<size_t>(batch.cu_seqlens_q[s]);
      const auto count = static_cast<size_t>(batch.cu_seqlens_q[s + 1]) - begin;
      const std::span tokens = std::span(batch.tokens).subspan(begin, count);
      OCTAVO_CHECK(std::ranges::any_of(asked_, [&](const auto& entry) {
        const Request& request = entry.second.request;
        return std::ranges::equal(request.prompt, tokens) &&
               second_text_of(batch, begin, count) == request.second_text;
      }));
    }
  }

  void finish() {
    if (runner_.in_flight().empty()) return;
    try {
      const StepResult result = runner_.finish();
      scheduler_.step_took(1 + 0.01 * draw(0, 30) * step_rows_.front());
      step_rows_.pop_front();
      take(scheduler_.commit(result));
    } catch (const std::runtime_error& error) {
      scheduler_.release_masks();
      runner_.drop();
      step_rows_.clear();
      take(scheduler_.fail(error.what()));
    }
  }

  void run_dry() {
    runner_.fail_starts = 0;
    int64_t bound = 100;
    for (const auto& [id, asked] : asked_)
      bound +=
          40ll * asked.request.n * (options_.max_model_len + asked.request.max_tokens) +
          200ll * asked.request.n * pieces_ * static_cast<int64_t>(asked.request.images.size());
    for (int64_t steps = 0; !scheduler_.idle(); ++steps) {
      if (scheduler_.waits_for_disk()) --steps;
      OCTAVO_CHECK(steps < bound);  // no livelock
      start();
      if (chance(70) || full()) finish();
      check();
    }
    OCTAVO_CHECK(asked_.empty());
    if (disk_ == nullptr) check_background();  // a request that is read from disk is overtaken
    OCTAVO_CHECK(pool_.referenced_pages() == 0);
    prefixes_.index().clear();  // keeps the pages on disk
    OCTAVO_CHECK(pool_.free_pages() == pool_.page_count());
    OCTAVO_CHECK(prefixes_.index().nodes() == 1);
  }

  void check_background() {
    std::ranges::sort(background_admissions_);
    for (const Wait& wait : waits_) {
      const auto next = std::ranges::upper_bound(background_admissions_, wait.from);
      OCTAVO_CHECK(next == background_admissions_.end() || *next >= wait.to);
    }
  }

  void take(const std::vector<Update>& updates) {
    for (const Update& update : updates) {
      OCTAVO_CHECK(asked_.contains(update.request));
      Asked& asked = asked_.at(update.request);
      Answer& answer = asked.answers.at(static_cast<size_t>(update.choice));
      OCTAVO_CHECK(!answer.ended);
      if (update.cached_tokens) note_admission(asked, update.scheduled);
      for (const auto& entry : update.prompt_logprobs) {
        OCTAVO_CHECK(entry.rank == asked.prompt_logprobs);
        ++asked.prompt_logprobs;
        OCTAVO_CHECK(entry.token ==
                     asked.request.prompt.at(static_cast<size_t>(asked.prompt_logprobs)));
      }
      const Request& request = asked.request;
      OCTAVO_CHECK(update.logprobs.size() ==
                   (request.sampling.logprobs >= 0 ? update.tokens.size() : 0));
      OCTAVO_CHECK(update.hashes.size() == (request.hash_logits ? update.tokens.size() : 0));
      for (size_t i = 0; i < update.logprobs.size(); ++i)
        OCTAVO_CHECK(update.logprobs[i].token == update.tokens[i]);
      for (TokenId token : update.tokens) {
        OCTAVO_CHECK(token == expected_token(answer, request));
        take_token(answer, token);
        ++totals_.tokens;
      }
      if (update.finish) end(update, asked, answer);
    }
  }

  static std::shared_ptr<const TokenMask> mask_of(ConstraintState& state) {
    auto mask = std::make_shared<TokenMask>();
    mask->set(state.allowed());
    return mask;
  }

  void end(const Update& update, Asked& asked, Answer& answer) {
    answer.ended = true;
    const Request& request = asked.request;
    if (request.pooling != Pooling::kNone) return end_pooled(update, asked);
    const auto produced = static_cast<int>(answer.tokens.size() - request.prompt.size());
    const bool whole =
        *update.finish == FinishReason::kStop || *update.finish == FinishReason::kLength;
    if (*update.finish == FinishReason::kLength) {
      OCTAVO_CHECK(produced == request.max_tokens ||
                   static_cast<int>(answer.tokens.size()) == options_.max_model_len);
    } else if (*update.finish == FinishReason::kStop) {
      const bool own = answer.tokens.back() == 3 && !request.ignore_eos;
      const bool undrawn = answer.state && mask_of(*answer.state)->allows_nothing();
      totals_.constrained += answer.state != nullptr;
      OCTAVO_CHECK(own || undrawn ||
                   std::ranges::count(request.stop_token_ids, answer.tokens.back()) > 0);
      // The end of a grammar takes precedence over min_tokens.
      OCTAVO_CHECK(produced > request.min_tokens || request.min_tokens == 0 || answer.state);
    }
    if (whole && update.choice == 0 && request.sampling.prompt_logprobs >= 0)
      OCTAVO_CHECK(asked.prompt_logprobs == static_cast<int>(request.prompt.size()) - 1);
    totals_.finished += whole;
    totals_.aborted += *update.finish == FinishReason::kAbort;
    totals_.errors += *update.finish == FinishReason::kError;
    if (std::ranges::all_of(asked.answers, &Answer::ended)) asked_.erase(update.request);
  }

  void end_pooled(const Update& update, const Asked& asked) {
    OCTAVO_CHECK(update.tokens.empty() && asked.prompt_logprobs == 0);
    if (*update.finish == FinishReason::kStop) {
      const Request& request = asked.request;
      OCTAVO_CHECK(
          update.embedding ==
          (options_.whole_prompts
               ? model_.whole_embedding(request.prompt, request.second_text, request.pooling)
               : model_.embedding(request.prompt, request.pooling, request.adapter.get())));
      ++totals_.pooled;
      totals_.whole += options_.whole_prompts;
    }
    totals_.aborted += *update.finish == FinishReason::kAbort;
    totals_.errors += *update.finish == FinishReason::kError;
    asked_.erase(update.request);
  }

  void check() {
    invariants_.check();
    // No page is held after all requests have ended.
    if (scheduler_.idle()) OCTAVO_CHECK(pool_.referenced_pages() == 0);
    OCTAVO_CHECK(scheduler_.stats().running <= options_.max_num_seqs);
  }

  // Two of them have one name, as after a reload.
  static std::vector<std::shared_ptr<const Adapter>> make_adapters() {
    std::vector<std::shared_ptr<const Adapter>> adapters;
    for (int i = 0; i < kAdapters; ++i) {
      const auto id = static_cast<uint64_t>(i + 1);
      Sha256Digest digest = {};
      digest[0] = static_cast<uint8_t>(i);
      adapters.push_back(
          std::make_shared<const Adapter>(id, fmt::format("adapter {}", i / 2), digest));
    }
    return adapters;
  }
  std::map<CacheNamespace, uint64_t> effects_of_adapters() const {
    std::map<CacheNamespace, uint64_t> effects;
    for (const uint8_t first : {0, 1}) {
      CacheNamespace space = {};
      space[0] = first;
      for (const auto& adapter : adapters_)
        effects[namespace_of_adapter(space, adapter->digest())] = fake_effect(adapter.get());
    }
    return effects;
  }

  RandomDraws draws_;
  Totals& totals_;
  CachePlan plan_;
  const int pieces_ = draw(1, 6);  // of the encoding of an image
  SchedulerOptions options_;
  PagePool pool_;
  PrefixCache prefixes_;
  FakeModel model_;
  FakeRunner runner_;
  std::unique_ptr<DiskTier> tier_;
  std::unique_ptr<PrefixDisk> disk_;
  Scheduler scheduler_;
  std::map<RequestId, Asked> asked_;
  RequestId next_id_ = 1;
  uint64_t next_call_ = 4;
  std::vector<Race> races_;
  std::deque<int> step_rows_;  // in flight
  std::vector<Time> background_admissions_;
  std::vector<Wait> waits_;
  const std::vector<std::shared_ptr<const Adapter>> adapters_ = make_adapters();
  PageInvariants invariants_{plan_,           pool_, prefixes_, runner_, effects_of_adapters(),
                             &fuzz_seen_block};
};

int run(const Options& options) {
  std::mt19937 random(options.seed);
  Totals totals;
  while (totals.operations < options.operations)
    Round(random, options, totals).run(kOperationsPerRound);
  std::cout << nlohmann::json{{"operations", totals.operations},
                              {"requests", totals.requests},
                              {"races_in_the_queue", totals.races},
                              {"resumed", totals.resumed},
                              {"background", totals.background},
                              {"with_adapters", totals.adapted},
                              {"adapter_loads", totals.adapter_loads},
                              {"finished", totals.finished},
                              {"aborted", totals.aborted},
                              {"ended_with_error", totals.errors},
                              {"tokens", totals.tokens},
                              {"pooled", totals.pooled},
                              {"pooled_whole", totals.whole},
                              {"ended_by_their_grammar", totals.constrained},
                              {"steps", totals.steps},
                              {"preemptions", totals.preemptions},
                              {"prefix_hit_tokens", totals.hits},
                              {"failed_steps", totals.failed_steps},
                              {"drafts", totals.drafts},
                              {"draft_tokens", totals.draft_tokens},
                              {"accepted_draft_tokens", totals.accepted},
                              {"accepted_with_state", totals.accepted_with_state},
                              {"restored_tokens", totals.restored},
                              {"corrupt_pages", totals.corrupt},
                              {"images", totals.images},
                              {"images_encoded", totals.images_encoded},
                              {"image_hits", totals.image_hits},
                              {"most_steps_in_flight", totals.most_in_flight},
                              {"fingerprint", fmt::format("{:016x}", totals.fingerprint)}}
            << "\n";
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Tests scheduler, prefix cache and page pool with random operations");
  app.add_option("--operations", options.operations, "random operations to run");
  app.add_option("--seed", options.seed, "seed of the random numbers");
  app.add_option("--hash-bits", options.hash_bits, "bits of the prefix cache's hashes");
  app.add_option("--stages", options.stages, "pipeline stages; N + 1 steps are in flight")
      ->check(CLI::Range(1, 64));
  app.add_option("--disk", options.disk, "folder of a disk tier");
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}
