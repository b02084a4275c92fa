#include "engine/warm_up.h"

#include <mlx/memory.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "base/log.h"
#include "kernels/metal/compile_pipelines.h"
#include "kernels/metal/pipeline_collector.h"
#include "kernels/runtime/primitive.h"
#include "models/model_description.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// Sequences of equal length, which all have `rows` rows in the step.
struct StepShape {
  int sequences = 1;
  int rows = 1;
  int context = 1;
};

// Every small number, because a kernel may be made for it; then each power of two and the number
// after it. A choice that applies to a range of numbers is missed only if the range lies between
// two of these.
std::set<int> sample_counts(int most) {
  constexpr int kSmall = 16;
  std::set<int> counts = {most};
  for (int count = 1; count <= std::min(kSmall, most); ++count) counts.insert(count);
  for (int64_t count = kSmall; count <= most; count *= 2) {
    counts.insert(static_cast<int>(count));
    if (count < most) counts.insert(static_cast<int>(count) + 1);
  }
  return counts;
}

BlockTable zero_table(int sequences, int columns) {
  return {columns,
          std::vector<PageId>(static_cast<size_t>(sequences) * static_cast<size_t>(columns))};
}

Batch batch_of(const StepShape& shape, const CachePlan& cache, const WarmUpLimits& limits) {
  Batch batch;
  const int total = shape.sequences * shape.rows;
  const auto size = static_cast<size_t>(total);
  batch.tokens.resize(size);
  batch.token_sources.resize(size, -1);
  for (int s = 0; s < shape.sequences; ++s) {
    for (int row = 0; row < shape.rows; ++row)
      batch.positions.push_back(shape.context - shape.rows + row);
    if (limits.whole_prompts) batch.last_visible.resize(batch.positions.size(), shape.context - 1);
    batch.cu_seqlens_q.push_back((s + 1) * shape.rows);
    batch.context_lens.push_back(shape.context);
  }
  for (const CacheGroup& group : cache.groups)
    batch.block_tables.push_back(zero_table(shape.sequences, group.pages_for(shape.context)));
  if (cache.state)
    batch.block_tables.push_back(zero_table(shape.sequences, 2 * cache.state_pages()));
  for (int row = std::max(0, total - kLogitRows); row < total; ++row) {
    if (limits.draws) {
      batch.logit_rows.push_back(row);
      batch.sampling.emplace_back();
    } else {
      batch.hidden_rows.push_back(row);
    }
  }
  if (limits.predicts) {
    batch.next_tokens.resize(size);
    batch.next_sources.resize(size, -1);
  }
  return batch;
}

// Whole texts: one of each length, and as many as fit a step.
std::vector<StepShape> whole_shapes(const WarmUpLimits& limits) {
  std::vector<StepShape> shapes;
  for (const int rows : sample_counts(std::min(limits.rows, limits.context))) {
    shapes.push_back({.rows = rows, .context = rows});
    const int sequences = std::min(limits.sequences, limits.rows / rows);
    if (sequences > 1) shapes.push_back({.sequences = sequences, .rows = rows, .context = rows});
  }
  return shapes;
}

std::vector<StepShape> step_shapes(const WarmUpLimits& limits) {
  if (limits.whole_prompts) return whole_shapes(limits);
  std::vector<StepShape> shapes;
  // Chunks of a prompt, and drafts: at the start of a sequence and at its end.
  for (const int rows : sample_counts(std::min(limits.rows, limits.context))) {
    shapes.push_back({.rows = rows, .context = rows});
    shapes.push_back({.rows = rows, .context = limits.context});
  }
  // Single rows, whose attention is divided by context.
  for (const int sequences : {1, std::min(limits.sequences, limits.rows)}) {
    for (int64_t context = 64; context < limits.context; context *= 2)
      shapes.push_back({.sequences = sequences, .context = static_cast<int>(context) + 1});
    shapes.push_back({.sequences = sequences, .context = limits.context});
  }
  return shapes;
}

// Logs the progress once per second, so that a short compilation logs nothing.
class CompileLog {
 public:
  void report(size_t done, size_t total) {
    const auto now = Clock::now();
    if (done == total && last_ != start_) {
      spdlog::info("Compiled {} Metal kernels in {:.1f} s", total,
                   std::chrono::duration<double>(now - start_).count());
    } else if (now - last_ >= std::chrono::seconds(1)) {
      last_ = now;
      spdlog::info("Compiling Metal kernels: {} of {}", done, total);
    }
  }

 private:
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace

std::vector<Batch> warm_up_batches(const CachePlan& cache, const WarmUpLimits& limits) {
  std::vector<Batch> batches;
  for (const StepShape& shape : step_shapes(limits)) {
    batches.push_back(batch_of(shape, cache, limits));
    if (!limits.has_adapters) continue;
    // Products with adapters are other pipelines. The slot may be empty.
    batches.push_back(batches.back());
    batches.back().adapter_slots.resize(batches.back().tokens.size(), 0);
  }
  if (!limits.draws) return batches;
  // A step that follows another takes its tokens from it.
  Batch& last = batches.back();
  last.token_sources[0] = 0;
  last.waits_for_previous = true;
  if (limits.predicts) last.next_sources[0] = 0;
  // A row with rules makes the draw of its step another one; logprobs have kernels of their own.
  batches.push_back(batch_of({}, cache, limits));
  batches.back().sampling[0].rules = std::make_shared<const LogitRules>();
  batches.back().sampling[0].logprobs = 1;
  return batches;
}

std::vector<metal::PipelineKey> find_pipelines(Runner& runner, const std::vector<Batch>& batches) {
  const metal::PipelineCollector collector;
  for (const Batch& batch : batches) {
    runner.start(batch);
    runner.finish();
  }
  runner.drop();
  return {collector.pipelines().begin(), collector.pipelines().end()};
}

void warm_up(Runner& runner, const CachePlan& cache, const WarmUpLimits& limits) {
  if (!uses_metal()) return;
  const std::vector<metal::PipelineKey> keys =
      find_pipelines(runner, warm_up_batches(cache, limits));
  // The batches' memory, which was allocated but not used.
  mx::clear_cache();
  mx::reset_peak_memory();
  CompileLog log;
  metal::compile_pipelines(keys, [&log](size_t done, size_t total) { log.report(done, total); });
}

}  // namespace octavo
