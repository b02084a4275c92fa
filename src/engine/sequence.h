// sequence.h - one answer in the making: a choice of a request. No MLX. Engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/sequence_cache.h"
#include "engine/batch.h"
#include "engine/pooled_rows.h"
#include "engine/request.h"
#include "engine/update.h"
#include "kernels/row_sampling.h"

namespace octavo {

// What the choices of a request share.
struct RequestShared {
  RequestId id = 0;
  Request request;
  std::vector<TokenId> stop_tokens = {};  // the model's own, unless ignored, and the request's
  size_t model_stop_tokens = 0;           // how many of them, at the front, are the model's own
  std::shared_ptr<const LogitRules> rules = nullptr;
  SequenceKeys keys = {};
  int max_length = 0;  // tokens of prompt and answer
  // Where others may go on from this prompt: its message borders and its end, at full pages.
  std::vector<int> snapshot_edges = {};
};

// Tokens [0, known) have been read; those behind them are in flight: drawn by steps that are
// queued, at most one before a step is added and two after. K and V of the first `computed` tokens
// are written, or will be by steps queued so far.
class Sequence {
 public:
  Sequence(std::shared_ptr<const RequestShared> shared, int choice, PrefixCache& prefixes);

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
    const bool waits = request().needs_host && tokens_in_flight_ > 0;
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
  // The oldest token in flight has been read.
  void take_token(TokenId token);
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
  RowSampling row_sampling() const;
  void ask_prompt_logprobs(BatchBuilder& batch, int first_row, int rows);
  void ask_hidden(BatchBuilder& batch, int first_row, int rows);

  std::shared_ptr<const RequestShared> shared_;
  int choice_;
  std::shared_ptr<TokenLog> log_;  // room for the longest answer; none before the first admission
  SequenceCache cache_;
  int computed_ = 0;
  int tokens_in_flight_ = 0;
  int newest_entry_ = -1;    // of the newest one among the drawn tokens of its step
  int prompt_logprobs_ = 0;  // read
  int prompt_logprobs_asked_ = 0;
  std::optional<PooledRows> pooled_;  // none: tokens are drawn
};

}  // namespace octavo
