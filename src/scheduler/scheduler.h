// scheduler.h - decides what every step runs. No MLX. Engine thread only.
//
// One token budget per step: decode rows first, then chunks of prompts. Steps are queued one ahead:
// next() may be called while one step is in flight. Running out of pages sends the latest sequence
// back to the queue, where it waits to be computed again; that changes no bit of its answer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/engine_stats.h"
#include "scheduler/prompt_history.h"
#include "scheduler/sequence.h"
#include "scheduler/speculator.h"
#include "scheduler/step_reader.h"
#include "scheduler/step_runner.h"

namespace octavo {

enum class SchedulingPolicy : uint8_t {
  kFcfs,      // first come, first served
  kPriority,  // Request::priority, lower first, then as they came
};

struct SchedulerOptions {
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  int max_model_len = 0;
  int vocab = 0;
  bool draws = true;                         // false: the model has no logits, requests pool
  std::vector<TokenId> stop_token_ids = {};  // the model's own
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  int mask_threads = 1;  // that find out what constrained answers may say
  bool enable_prefix_caching = true;
  SpeculationOptions speculation = {};
};

class Scheduler {
 public:
  // `prefixes` and `disk` must outlive the scheduler; `prefixes` is empty. Its pool holds at least
  // one sequence of max_model_len. `disk`: none, or where beginnings are kept behind the memory.
  // Without a drafter nobody drafts; layers with a state cannot take rows back, so with them nobody
  // may.
  Scheduler(SchedulerOptions options, PrefixCache& prefixes, PrefixDisk* disk = nullptr,
            std::unique_ptr<Drafter> drafter = nullptr);
  ~Scheduler();

  // The request must be valid (validate).
  void add(RequestId id, Request request);
  // Ends all choices of the request, or only one, that have not ended. Their pages are free when no
  // step in flight holds them: within two steps. Unknown ids are ignored.
  std::vector<Update> abort(RequestId id, std::optional<int> only_choice = std::nullopt);

  // The next step, or nothing when nothing can run before the step in flight is committed. At most
  // one may be in flight.
  std::optional<Batch> next();
  // The oldest step in flight is done.
  std::vector<Update> commit(const StepResult& result);
  // Before waiting for steps in flight that will not be committed: none of them waits for a mask
  // any more. fail() comes next.
  void release_masks();
  // Nothing that the steps in flight wrote is to be trusted. Their sequences are computed again,
  // one at a time; one that fails again is ended with `reason`.
  std::vector<Update> fail(const std::string& reason);

  // Forgets every cached prefix.
  void reset_prefix_cache();
  // Nothing can run before pages come back from the disk.
  bool waits_for_disk() const {
    return !restoring_.empty() && running_.empty() && waiting_.empty() && steps_.empty();
  }

  bool idle() const { return sequences_.empty() && steps_.empty(); }
  SchedulerStats stats() const;
  const SchedulerOptions& options() const { return options_; }
  // For whoever runs the steps to tell.
  StepCosts& costs() { return speculator_.costs(); }

 private:
  struct Rank {
    int priority;
    RequestId arrival;
    int choice;
    auto operator<=>(const Rank&) const = default;
  };
  struct Step {
    std::vector<StepEntry> entries;
    bool has_drafts = false;
  };
  // A step being put together.
  struct Plan {
    BatchBuilder batch;
    Step step;
    int budget;
    Drafts drafts = {};
  };
  using Queue = std::map<Rank, Sequence*>;  // best first

  Rank rank_of(const Sequence& sequence) const;

  std::vector<Sequence*> decoding() const;
  void plan_running(Plan& plan);
  void plan_waiting(Plan& plan);
  void plan_suspect(Plan& plan);
  // True when the sequence waits, apart from the queue, for pages of its beginning.
  bool fetch_from_disk(Sequence& sequence);
  void take_from_disk();
  // Moves the sequence from the queue to the running ones if the pool has room for it.
  bool admit(Sequence& sequence);
  void plan_rows(Sequence& sequence, Plan& plan);
  // False: there are no drafts for it, or no pages to spare.
  bool plan_drafts(Sequence& sequence, Plan& plan);
  // Pages for `tokens` tokens; sequences that rank behind give theirs up. False: not in this step.
  bool make_room(Sequence& sequence, int tokens);
  void preempt(Sequence& sequence);
  void requeue(Sequence& sequence);

  // Passes an entry's results on to its sequence, and ends the sequence if they do.
  void take_results(const StepEntry& entry, StepReader& reader, Update& update);
  void end(Sequence& sequence, FinishReason reason, Update& update);
  // After a step or an end: lets go of what the sequence need not hold.
  void settle(Sequence& sequence);

  SchedulerOptions options_;
  PrefixCache& prefixes_;
  PrefixDisk* disk_;
  MaskWorker mask_worker_;
  std::map<Rank, std::unique_ptr<Sequence>> sequences_;  // all, until no step holds them
  Queue waiting_;
  struct Restoring {
    Sequence* sequence;
    std::shared_ptr<PrefixRestore> restore;
  };
  std::map<Rank, Restoring> restoring_;  // will be waiting again
  Queue running_;
  std::deque<Sequence*> suspects_;  // a step of theirs failed
  std::deque<Step> steps_;          // in flight, oldest first
  PromptHistory history_;
  int releasing_ = 0;  // preempted sequences whose pages a step still holds
  Speculator speculator_;
  SchedulerStats stats_;
};

}  // namespace octavo
