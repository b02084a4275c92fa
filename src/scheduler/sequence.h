// sequence.h - one answer in the making: a choice of a request. No MLX. Engine thread only.
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

// Tokens [0, known) have been read; those behind them are in flight: drawn by steps that are
// queued, at most one before a step is added and two after. K and V of the first `computed` tokens
// are written, or will be by steps queued so far. A step with drafts also writes K and V behind
// them, which count once their draft has turned out right.
class Sequence {
 public:
  // `masks` must outlive it; it works for a request with a constraint.
  Sequence(std::shared_ptr<const RequestShared> shared, int choice, PrefixCache& prefixes,
           MaskWorker& masks);
  ~Sequence() { release_masks(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const RequestShared& shared() const { return *shared_; }
  const Request& request() const { return shared_->request; }
  int choice() const { return choice_; }
  int prompt_length() const { return static_cast<int>(request().prompt.size()); }
  int known() const { return log_ ? log_->size() : prompt_length(); }
  std::span<const TokenId> tokens() const {
    return log_ ? log_->all() : std::span<const TokenId>(request().prompt);
  }
  // Tokens in flight included.
  int length() const { return known() + tokens_in_flight_; }
  int computed() const { return computed_; }
  // Rows that could run now.
  int rows_left() const {
    const bool waits = drafts_ != nullptr && tokens_in_flight_ > 0;
    return !waits && length() < shared_->max_length ? length() - computed_ : 0;
  }
  // All but the newest token has been computed.
  bool is_decoding() const { return computed_ > 0 && length() - computed_ == 1; }

  // Before its first row: takes what the prefix cache knows. Returns tokens that need no row.
  int reuse_prefix();
  // What cached_tokens would be if states could begin anywhere. While it holds what it reused.
  int hit_of_pages() { return cache_.hit_of_pages(tokens(), reuse_limit()); }
  // Tokens whose rows need not run, if they are cached.
  int reuse_limit() const;
  // Begins to bring back from the disk what is not in memory; nothing when there is no more.
  std::shared_ptr<PrefixRestore> restore_prefix(PrefixDisk& disk);
  // What the steps that are done wrote goes to the disk.
  void save(PrefixDisk& disk);
  // How many of the next `rows` rows one step may take.
  int rows_of_one_step(int rows) const {
    return cache_.rows_before_snapshot(computed_, rows, shared_->snapshot_edges);
  }
  // Adds the next `rows` rows, for which there are pages, and draws a token behind the last known
  // one. Returns the entry among the drawn tokens, or -1 when it has not come so far or none is
  // drawn.
  int add_rows(BatchBuilder& batch, int rows);
  // Adds the row of the newest token and one for each of `drafts`, the tokens guessed to follow it,
  // and draws behind each of them. Returns the first entry among the drawn tokens; the others
  // follow it. Nothing of the sequence is in flight, and all but the newest token is computed.
  int add_drafts(BatchBuilder& batch, std::vector<TokenId> drafts);
  // The oldest token in flight has been read. True: it is what its draft said, so the token drawn
  // behind that draft is the next to be read.
  bool take_token(TokenId token);
  // How the token behind the newest is drawn, as if `drafted` drafts had come before it.
  RowSampling row_sampling(int drafted = 0) const;
  // What the oldest token in flight was allowed to be; null: anything.
  const TokenMask* oldest_mask() const { return masks_.empty() ? nullptr : masks_.front().get(); }
  // The answer goes on behind the token read last: what may follow can be found out.
  void allow_next();
  // No draw in flight waits for its mask any more; what they draw has no meaning.
  void release_masks();
  // K and V up to `computed` can be found by others, as far as the tokens are known. While a step
  // is put together its own snapshots cannot.
  void publish(bool in_step);
  // This many more prompt logprobs have been read; rows computed again do not ask for them again.
  void take_prompt_logprobs(int count) { prompt_logprobs_ += count; }
  // The next `count` hidden rows of a sequence that pools. Returns the vector with the last of
  // them.
  std::optional<std::vector<float>> take_hidden(std::span<const float> rows, int count);

  // Forgets all that was computed. The tokens stay.
  void restart();

  SequenceCache& cache() { return cache_; }
  DraftPace pace;
  int steps_in_flight = 0;
  int newest_rows_start = 0;   // position of the first row added last
  bool finished = false;       // no step may be added any more
  bool preempted = false;      // goes back to the queue as soon as no step holds its pages
  bool failed_before = false;  // a step it was in failed: runs alone until it has drawn a token
  bool asked_disk = false;     // since it last began to wait
  // Of the first admission; reported once.
  std::optional<int> cached_tokens = {};
  std::shared_ptr<const CacheReport> cache_report = nullptr;
  int memory_tokens = -1;  // cached when the disk began to bring back more; -1: it did not
  std::chrono::steady_clock::time_point scheduled = {};

 private:
  std::shared_ptr<const TokenMask> next_mask();
  void ask_prompt_logprobs(BatchBuilder& batch, int first_row, int rows);
  void ask_hidden(BatchBuilder& batch, int first_row, int rows);

  std::shared_ptr<const RequestShared> shared_;
  int choice_;
  std::shared_ptr<TokenLog> log_;  // room for the longest answer; none before the first admission
  SequenceCache cache_;
  int computed_ = 0;
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
