// sequence.h - one answer in the making: a choice of a request. No MLX. Engine thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/sequence_cache.h"
#include "engine/batch.h"
#include "engine/mask_worker.h"
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
    const bool waits = request().needs_host && tokens_in_flight_ > 0;
    return !waits && length() < shared_->max_length ? length() - computed_ : 0;
  }
  // All but the newest token has been computed.
  bool is_decoding() const { return computed_ > 0 && length() - computed_ == 1; }

  // Before its first row: takes what the prefix cache knows. Returns tokens that need no row.
  int reuse_prefix();
  // How many of the next `rows` rows one step may take.
  int rows_of_one_step(int rows) const {
    return cache_.rows_before_snapshot(computed_, rows, shared_->snapshot_edges);
  }
  // Adds the next `rows` rows, for which there are pages, and draws a token behind the last known
  // one. Returns the entry among the drawn tokens, or -1 when it has not come so far or none is
  // drawn.
  int add_rows(BatchBuilder& batch, int rows);
  // What the oldest token in flight was allowed to be; null: anything.
  const TokenMask* oldest_mask() const { return masks_.empty() ? nullptr : masks_.front().get(); }
  // The oldest token in flight has been read.
  void take_token(TokenId token);
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
  int steps_in_flight = 0;
  int newest_rows_start = 0;   // position of the first row added last
  bool finished = false;       // no step may be added any more
  bool preempted = false;      // goes back to the queue as soon as no step holds its pages
  bool failed_before = false;  // a step it was in failed: runs alone until it has drawn a token
  // Of the first admission; reported once.
  std::optional<int> cached_tokens = {};
  std::chrono::steady_clock::time_point scheduled = {};

 private:
  RowSampling row_sampling() const;
  std::shared_ptr<const TokenMask> next_mask();
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
  std::optional<PooledRows> pooled_;              // none: tokens are drawn
  std::optional<ConstrainedAnswer> constrained_;  // knows the tokens that were read
  std::deque<std::shared_ptr<TokenMask>> masks_;  // of the draws in flight, with a constraint
};

}  // namespace octavo
