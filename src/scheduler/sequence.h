// sequence.h - the tokens, pages and progress of one choice of a request. No MLX. Engine thread
// only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/sequence_cache.h"
#include "kernels/types/row_sampling.h"
#include "scheduler/batch.h"
#include "scheduler/draft_pace.h"
#include "scheduler/mask_worker.h"
#include "scheduler/pooled_rows.h"
#include "scheduler/request_shared.h"
#include "scheduler/update.h"

namespace octavo {

// Tokens [0, known) have been read. Later ones are in flight, drawn by queued steps: at most 1
// before a step is added and two after; with several pipeline stages, none before and one after. K
// and V of the first `computed` tokens have been written or will be by steps queued so far. A step
// with drafts also writes K and V past `computed`, which become valid once the draft is accepted.
class Sequence {
 public:
  // `masks` must outlive the sequence; it is used if the request has a constraint.
  Sequence(std::shared_ptr<const RequestShared> shared, int choice, PrefixCache& prefixes,
           MaskWorker& masks);
  ~Sequence() { release_masks(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const RequestShared& shared() const { return *shared_; }
  const Request& request() const { return shared_->request; }
  int choice() const { return choice_; }
  int prompt_length() const { return static_cast<int>(request().prompt.size()); }
  // The output of an earlier attempt, which this one continues.
  std::span<const TokenId> resumed() const {
    return request().resumed.empty() ? std::span<const TokenId>() : resumed_output().tokens;
  }
  // Tokens that are not drawn: the prompt's and the resumed ones.
  int given_length() const { return prompt_length() + static_cast<int>(resumed().size()); }
  int known() const { return log_ ? log_->size() : given_length(); }
  // Only the prompt's before the first admission.
  std::span<const TokenId> tokens() const {
    return log_ ? log_->all() : std::span<const TokenId>(request().prompt);
  }
  // Includes tokens in flight.
  int length() const { return known() + tokens_in_flight_; }
  int computed() const { return computed_; }
  // True if a token drawn by a step in flight has not been read.
  bool awaits_token() const { return tokens_in_flight_ > 0; }
  // No row of the sequence before this position is in flight.
  int complete() const { return steps_in_flight == 0 ? computed_ : complete_; }
  // The oldest step in flight with rows of the sequence, the last one at `end` - 1, has completed.
  void take_step(int end) {
    --steps_in_flight;
    complete_ = end;
    ran_ = true;
  }
  // Rows that can run now.
  int rows_left() const {
    const bool waits = drafts_ != nullptr && tokens_in_flight_ > 0;
    return !waits && length() < shared_->max_length ? length() - computed_ : 0;
  }
  // The first image with rows that have not been computed; null if there is none.
  const PromptImage* next_image() const;
  // True if all tokens but the newest have been computed.
  bool is_decoding() const { return computed_ > 0 && length() - computed_ == 1; }

  // Before the first row: reuses the longest cached prefix. Returns its length in tokens.
  int reuse_prefix();
  // What reuse_prefix() would have returned if snapshots existed everywhere. Only while the reused
  // pages are held.
  int hit_of_pages() { return cache_.hit_of_pages(tokens(), reuse_limit()); }
  // Number of tokens that may be taken from the cache; the rows of later ones must run.
  int reuse_limit() const;
  // Starts reading the part of the prefix that is on disk but not in memory. Null if there is none.
  std::shared_ptr<PrefixRestore> restore_prefix(PrefixDisk& disk);
  // Passes pages of completed steps to the disk tier.
  void save(PrefixDisk& disk);
  // Pages that it must get to hold all known tokens and the state after them, in steps of at most
  // `step_rows` rows.
  int missing_pages(const CachePlan& plan, int step_rows) const;
  // How many of the next `rows` rows may be in one step.
  int rows_of_one_step(int rows) const {
    return cache_.rows_before_snapshot(computed_, rows, shared_->snapshot_edges);
  }
  // Adds the next `rows` rows, which must have pages. Draws a token if the newest token is among
  // them. Returns its index among the drawn tokens, or -1 if none is drawn.
  int add_rows(BatchBuilder& batch, int rows);
  // Adds the row of the newest token and one row for each draft, and draws after each of them.
  // Returns the index of the first drawn token; the others follow it. Requires that no token of the
  // sequence is in flight and that all tokens but the newest are computed.
  int add_drafts(BatchBuilder& batch, std::vector<TokenId> drafts);
  // Takes the oldest token in flight. True if it equals its draft, so that the token drawn after
  // that draft is the next to be read.
  bool take_token(TokenId token);
  // After the last of those tokens: the state continues after the drafts that were right. `start`:
  // position of the step's first row.
  void keep_right_drafts(int start);
  // How the next token is drawn, assuming that `drafted` drafts precede it.
  RowSampling row_sampling(int drafted = 0) const;
  // The mask of the oldest token in flight; null if unconstrained.
  const TokenMask* oldest_mask() const { return masks_.empty() ? nullptr : masks_.front().get(); }
  // The sequence continues after the token read last: its next mask can be computed.
  void allow_next();
  // Unblocks draws in flight that wait for a mask; their results must be ignored.
  void release_masks();
  // Publishes K and V of tokens that are computed and known in the prefix index. `in_step`: the
  // step is being built, so its own snapshots are not published yet.
  void publish(bool in_step);
  // Counts prompt logprobs that have been read, so that recomputed rows do not request them again.
  void take_prompt_logprobs(int count) { prompt_logprobs_ += count; }
  // Takes the next `count` hidden rows of a pooling sequence. Returns the pooled vector after the
  // last one.
  std::optional<std::vector<float>> take_hidden(std::span<const float> rows, int count);

  // Keeps the request's adapter in a slot until restart().
  void hold_adapter(AdapterLease lease) { adapter_.emplace(std::move(lease)); }
  // Discards all computed rows and releases the pages and the adapter. Keeps the tokens.
  void restart();

  // Names the call the request is part of. Numbers of callers and request ids do not meet.
  uint64_t call() const {
    return request().call != 0 ? request().call | uint64_t{1} << 63 : shared_->id;
  }

  SequenceCache& cache() { return cache_; }
  int64_t turn = 0;  // see FairTurns; set once
  DraftPace pace;
  std::optional<TokenId> predicted = {};  // the model's own guess of the token after the newest
  int steps_in_flight = 0;
  uint64_t newest_step = 0;    // the number of the newest step with its rows
  bool finished = false;       // no more steps may be added
  bool preempted = false;      // returns to the queue as soon as no step uses its pages
  bool recomputes = false;     // was requeued and has drawn no token since
  bool failed_before = false;  // was in a failed step: runs alone until it has drawn a token
  bool asked_disk = false;     // since it was last queued
  int passed_by = 0;           // sequences with adapters admitted while it waited for a slot
  // Set at the first admission; reported once.
  std::optional<int> cached_tokens = {};
  std::shared_ptr<const CacheReport> cache_report = nullptr;
  int memory_tokens = -1;  // tokens cached in memory when a disk read started; -1 if none started
  std::chrono::steady_clock::time_point scheduled = {};

 private:
  const ResumedOutput& resumed_output() const {
    return request().resumed[static_cast<size_t>(choice_)];
  }
  int adapter_slot() const { return adapter_ ? adapter_->slot() : -1; }
  void begin_log();
  // The rows from computed() on are part of a step.
  void begin_step();
  std::shared_ptr<const TokenMask> next_mask();
  void ask_prompt_logprobs(BatchBuilder& batch, int first_row, int rows);
  void ask_hidden(BatchBuilder& batch, int first_row, int rows);

  std::shared_ptr<const RequestShared> shared_;
  int choice_;
  std::shared_ptr<TokenLog> log_;  // room for the longest answer; none before the first admission
  SequenceCache cache_;
  std::optional<AdapterLease> adapter_;  // while admitted
  int computed_ = 0;
  int complete_ = 0;      // first position of the rows in flight
  int newest_start_ = 0;  // first position of the newest step's rows
  bool ran_ = false;      // a step has completed since the sequence was admitted
  int tokens_in_flight_ = 0;
  int newest_entry_ = -1;  // of the newest one among the drawn tokens of its step
  std::shared_ptr<const std::vector<TokenId>> drafts_;  // of the step in flight
  size_t drafts_taken_ = 0;                             // of them, found right
  int prompt_logprobs_ = 0;                             // read
  int prompt_logprobs_asked_ = 0;
  std::optional<PooledRows> pooled_;              // none: tokens are drawn
  std::optional<ConstrainedAnswer> constrained_;  // knows the tokens that were read
  std::deque<std::shared_ptr<TokenMask>> masks_;  // of the draws in flight, with a constraint
};

}  // namespace octavo
