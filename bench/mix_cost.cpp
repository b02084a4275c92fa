#include "bench/mix_cost.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/error.h"

namespace octavo::bench {
namespace {

struct Running {
  MixRequest request;
  int computed = 0;  // rows so far
  // The last token is not an input of any step.
  int rows_in_all() const { return request.prompt_tokens + request.output_tokens - 1; }
  bool decodes() const { return computed >= request.prompt_tokens; }
};

// Replays the schedule; sums the cost of steps without the weights, which all rows share.
class Replay {
 public:
  Replay(const ModelDescription& model, std::span<const MixRequest> requests,
         const MixOptions& options)
      : model_(model), waiting_(requests), options_(options) {}

  bool done() const { return waiting_.empty() && running_.empty(); }

  // Runs the next step and returns its rows.
  int step(StepCost& cost) {
    int budget = options_.max_num_batched_tokens;
    // Sequences that start to decode in this step already had their rows.
    std::vector<Running*> prefilling;
    for (Running& running : running_) {
      if (!running.decodes()) {
        prefilling.push_back(&running);
      } else if (budget > 0) {
        cost += decode_cost(model_, 0, 1, running.computed + 1, options_.kv_format);
        ++running.computed;
        --budget;
      }
    }
    for (Running* running : prefilling) prefill(*running, budget, cost);
    while (budget > 0 && !waiting_.empty() && running_.size() < max_sequences()) {
      running_.push_back({.request = waiting_.front()});
      waiting_ = waiting_.subspan(1);
      prefill(running_.back(), budget, cost);
    }
    std::erase_if(running_, [](const Running& r) { return r.computed == r.rows_in_all(); });
    return options_.max_num_batched_tokens - budget;
  }

 private:
  size_t max_sequences() const { return static_cast<size_t>(options_.max_num_seqs); }

  void prefill(Running& running, int& budget, StepCost& cost) {
    const int left = running.request.prompt_tokens - running.computed;
    const int rows = std::min(budget, left);
    if (rows == 0) return;
    cost += prefill_cost(model_, 0, running.computed, rows, rows == left, options_.kv_format);
    running.computed += rows;
    budget -= rows;
  }

  const ModelDescription& model_;
  std::span<const MixRequest> waiting_;
  const MixOptions& options_;
  std::vector<Running> running_;  // in order of arrival
};

}  // namespace

MixCost mix_cost(const ModelDescription& model, const StepWeights& weights,
                 std::span<const MixRequest> requests, const MixOptions& options,
                 const StepLimits& machine) {
  OCTAVO_CHECK(options.max_num_seqs >= 1 && options.max_num_batched_tokens >= 1);
  for (const MixRequest& request : requests)
    OCTAVO_CHECK(request.prompt_tokens >= 1 && request.output_tokens >= 1);
  MixCost mix;
  for (Replay replay(model, requests, options); !replay.done();) {
    StepCost step;
    const auto rows = static_cast<uint64_t>(replay.step(step));
    step.weight_bytes = weights.read_by(rows);
    mix.rows += rows;
    mix.total += step;
    mix.limit_seconds += step.limit_seconds(machine);
    ++mix.steps;
  }
  return mix;
}

}  // namespace octavo::bench
