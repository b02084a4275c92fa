// scheduler.h - decides what each step runs. No MLX. Engine thread only.
//
// One token budget per step: decode rows first, then chunks of prompts. Steps are queued one ahead:
// next() may be called while one step is in flight. When the pool runs out of pages, the
// lowest-ranked sequence is preempted: it returns to the queue and is recomputed later, with the
// same output bits. A call of many sequences also gives way to a call that has none running.
// Background requests rank after all others; see BackgroundRows for the rows they get beside them.
//
// With whole_prompts, a prompt that does not fit what is left of a step waits for the next one, and so do
// all that rank after it. Nothing gives way, because each sequence ends after its first step.
//
// With several pipeline stages, each computes a step of its own, and one more step is queued. Only
// the last stage knows drawn tokens, so a sequence has no further rows until its token has been
// read; decoding sequences are divided into one group per stage. No step refers to earlier ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/background_rows.h"
#include "scheduler/engine_stats.h"
#include "scheduler/fair_turns.h"
#include "scheduler/image_options.h"
#include "scheduler/image_store.h"
#include "scheduler/prompt_history.h"
#include "scheduler/sequence.h"
#include "scheduler/speculator.h"
#include "scheduler/step_reader.h"
#include "scheduler/step_runner.h"

namespace octavo {

enum class SchedulingPolicy : uint8_t {
  kFcfs,      // first come, first served, in turns (FairTurns)
  kPriority,  // Request::priority, lower first, then as kFcfs
};

struct SchedulerOptions {
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  int max_model_len = 0;
  int vocab = 0;
  bool draws = true;                               // false: an embedding model, whose requests pool
  std::vector<TokenId> stop_token_ids = {};        // the model's own
  std::vector<TokenId> suppressed_token_ids = {};  // never drawn
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  int mask_threads = 1;  // for the masks of constrained requests
  bool enable_prefix_caching = true;
  SpeculationOptions speculation = {};
  bool predicts = false;  // the model takes Batch::next_tokens
  int adapter_slots = 0;  // adapters that steps may use at once
  ImageOptions images = {};
  // An encoder: all rows of a prompt run in one step and see one another, and nothing is cached. Requests
  // pool. No adapters, no images, no drafter and one stage.
  bool whole_prompts = false;
  // Parts of the model that compute different steps at the same time. More than one: no adapters and no
  // images.
  int pipeline_stages = 1;

  // Most rows of a step. With several stages, max_num_batched_tokens is divided among their steps,
  // but the decode rows of a group fit.
  int step_rows() const;
  // RequestLimits::max_whole_prompt.
  int longest_whole_prompt() const {
    return whole_prompts ? std::min(max_model_len, max_num_batched_tokens) : 0;
  }
  // Most steps in flight.
  int most_steps() const { return pipeline_stages + 1; }
};

class Scheduler {
 public:
  // `prefixes` and `disk` must outlive the scheduler; `prefixes` is empty. Its pool holds at least
  // one sequence of max_model_len. `disk` may be null. Without a drafter there is no speculation;
  // with one, the plan must count the states of most_drafts drafts.
  Scheduler(SchedulerOptions options, PrefixCache& prefixes, PrefixDisk* disk = nullptr,
            std::unique_ptr<Drafter> drafter = nullptr);
  ~Scheduler();

  // The request must be valid (validate).
  void add(RequestId id, Request request);
  // Ends the unfinished choices of the request, or only one of them. Their pages are released when
  // no step in flight uses them: within most_steps() steps. Unknown ids are ignored.
  std::vector<Update> abort(RequestId id, std::optional<int> only_choice = std::nullopt);

  // Returns the next step, or nullopt if nothing can run before the oldest step in flight is
  // committed. Fewer than most_steps() may be in flight.
  std::optional<Batch> next();
  // Before commit(): how long the oldest step in flight occupied a stage.
  void step_took(double seconds);
  // Takes the results of the oldest step in flight.
  std::vector<Update> commit(const StepResult& result);
  // Unblocks steps in flight that wait for a mask, so that they can be waited for and dropped.
  // fail() must be called next.
  void release_masks();
  // Discards everything the steps in flight wrote. Their sequences are recomputed one at a time; a
  // sequence that fails again ends with `reason`.
  std::vector<Update> fail(const std::string& reason);

  // Forgets every cached prefix.
  void reset_prefix_cache();
  // True if nothing can run until pages have been read from disk.
  bool waits_for_disk() const {
    return !restoring_.empty() && running_.empty() && waiting_.empty() && steps_.empty();
  }

  bool idle() const { return sequences_.empty() && steps_.empty(); }
  int steps_in_flight() const { return static_cast<int>(steps_.size()); }
  SchedulerStats stats() const;
  AdapterUse adapter_use() const;
  const SchedulerOptions& options() const { return options_; }
  // The step loop records step times here.
  StepCosts& costs() { return speculator_.costs(); }

 private:
  struct Rank {
    bool background;
    int priority;
    int64_t turn;
    RequestId arrival;
    int choice;
    auto operator<=>(const Rank&) const = default;
  };
  struct Step {
    std::vector<StepEntry> entries;
    bool has_drafts = false;
    // It has a group of decoding sequences: not of background requests, of background requests.
    // Only with several stages.
    std::array<bool, 2> decodes = {};
    StepShares shares = {};
    std::string image = {};  // identifier of the image whose encoding it continues; empty: none
  };
  // A step under construction.
  struct Plan {
    BatchBuilder batch;
    Step step;
    int budget;
    int left;  // of the budget of the step, without the limit of background requests
    Drafts drafts = {};
    bool background = false;     // the rows of background requests are being planned
    bool beside_others = false;  // their number is limited because of other requests' rows
    ImageWork image_work = {};

    void take_rows(int rows) {
      budget = std::max(0, budget - rows);
      left -= rows;
    }
  };
  // Decoding sequences that may have rows in the next step.
  struct DecodeGroup {
    std::vector<Sequence*> ready = {};  // those that have waited longest first
    int size = 0;                       // how many of them the step takes
  };
  using Queue = std::map<Rank, Sequence*>;  // best first

  Rank rank_of(const Sequence& sequence) const;
  FairTurns& turns_of(const Sequence& sequence) {
    return sequence.request().background ? background_turns_ : turns_;
  }

  bool pipelined() const { return options_.pipeline_stages > 1; }
  // The running sequences that decode. Without those of background requests if others decode.
  std::vector<Sequence*> decoding() const;
  std::vector<Sequence*> running_in_order() const;
  // Gives the plan its drafts. False if no step may be queued now because of drafts.
  bool choose_drafts(Plan& plan);
  // Plans the rows of all other requests, then those of background requests in what is left.
  void plan_step(Plan& plan);
  // Both plan either background requests or all others (Plan::background).
  void plan_running(Plan& plan);
  void plan_waiting(Plan& plan);
  void plan_suspect(Plan& plan);

  // With several stages: of background requests or of all others.
  DecodeGroup next_group(bool background) const;
  void plan_group(Plan& plan);
  // True if background requests may have rows in the step, at most Plan::budget.
  bool limit_background(Plan& plan);
  // Rows of the sequence that may be in the next step.
  int rows_now(const Sequence& sequence) const;
  // True if the next step may have rows of the sequence while earlier ones are in flight.
  bool may_continue(const Sequence& sequence) const;

  // A waiting sequence that may be admitted, and the best-ranked one that waits for an adapter slot
  // and would be passed by it.
  struct Candidate {
    Sequence* sequence = nullptr;
    Sequence* passed = nullptr;
  };
  // Of background requests or of all others; those only if none of the others waits.
  Candidate next_waiting(bool background) const;
  bool has_slot_for(const Sequence& sequence) const;
  // Preempts sequences until the adapter of `sequence` can get a slot. True if it preempted any.
  bool free_slot_for(const Sequence& sequence, bool only_background);
  // The running sequences that give up their slots and pages to the waiting `sequence`, in order.
  std::vector<Sequence*> giving_way_to(const Sequence& sequence) const;
  // Preempts one of them if that leaves rows of the next step to `sequence`.
  void free_rows_for(const Sequence& sequence, const Plan& plan);
  // True if the waiting `sequence` could get its pages if all of `others` were preempted.
  bool has_pages_without(const std::vector<Sequence*>& others, Sequence& sequence);
  void give_way(Sequence& sequence);
  // With whole_prompts: admits the sequence and adds its rows to the step. False if it must wait.
  bool admit_whole(Sequence& sequence, Plan& plan);
  // Starts reading the sequence's prefix from disk. True if it now waits for that, outside the
  // queue.
  bool fetch_from_disk(Sequence& sequence);
  void take_from_disk();
  // Pages that must be available to admit the sequence beside all running ones but those of `without`.
  // It already shares its cached prefix.
  int pages_to_admit(const Sequence& sequence, const std::vector<Sequence*>& without = {}) const;
  // Moves the sequence from the queue to the running ones if the pool has enough pages and its
  // adapter can get a slot.
  bool admit(Sequence& sequence);
  // How many of its next rows the sequence may have in what is left of the step.
  int rows_that_fit(const Sequence& sequence, const Plan& plan) const;
  // False if it gets no row.
  bool plan_rows(Sequence& sequence, Plan& plan);
  // False if it has no drafts or there are no free pages for them.
  bool plan_drafts(Sequence& sequence, Plan& plan);
  // Gets pages for `tokens` tokens, preempting sequences of lower rank. False if that is not
  // possible in this step.
  bool make_room(Sequence& sequence, int tokens);
  void preempt(Sequence& sequence);
  void requeue(Sequence& sequence);

  // Of the sequence's next `rows` rows those that can run: up to an image that is not encoded, or that
  // would have to be divided.
  int rows_with_images(const Sequence& sequence, int rows, const Plan& plan) const;
  // Gives the sequence's rows from `first_row` of the step on, at positions from `start` on, their images
  // and positions.
  void place_images(const Sequence& sequence, int first_row, int start, Plan& plan);
  std::vector<ImageStore::Wanted> wanted_images() const;
  // Adds a piece of an encoding to the step, if a sequence needs one.
  void encode_images(Plan& plan);
  // Running sequences that need the image which the step encodes.
  std::vector<Sequence*> waiting_for_image(const Step& step) const;
  // Pages that running sequences, but not those of `without`, will need once their images are encoded.
  int pages_reserved_for_images(const std::vector<Sequence*>& without) const;
  // True if an earlier choice of the same request runs and has an image to compute: once it has, this
  // one shares its rows.
  bool waits_for_choice(const Sequence& sequence) const;
  // For the reports of later prompts.
  void remember(const Sequence& sequence);
  void count_images(const Sequence& sequence, int hit);

  // Passes an entry's results on to its sequence, and ends the sequence if they do.
  void take_results(const StepEntry& entry, StepReader& reader, Update& update);
  void end(Sequence& sequence, FinishReason reason, Update& update);
  // After a step or an end: releases pages the sequence no longer needs.
  void settle(Sequence& sequence);

  SchedulerOptions options_;
  PrefixCache& prefixes_;
  PrefixDisk* disk_;
  MaskWorker mask_worker_;
  AdapterSlots adapter_slots_;  // outlives the sequences
  ImageStore image_store_;
  std::map<Rank, std::unique_ptr<Sequence>> sequences_;  // all, until no step uses them
  Queue waiting_;
  struct Restoring {
    Sequence* sequence;
    std::shared_ptr<PrefixRestore> restore;
  };
  std::map<Rank, Restoring> restoring_;  // return to waiting_
  Queue running_;
  std::deque<Sequence*> suspects_;  // to be recomputed one at a time, after a failed step
  std::deque<Step> steps_;          // in flight, oldest first
  FairTurns turns_;
  FairTurns background_turns_;
  BackgroundRows background_rows_;
  PromptHistory history_;
  int releasing_ = 0;  // preempted sequences whose pages a step still uses
  Speculator speculator_;
  SchedulerStats stats_;
};

}  // namespace octavo
