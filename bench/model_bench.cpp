#include "bench/model_bench.h"

#include <mlx/memory.h>

#include <algorithm>
#include <random>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/widen.h"
#include "bench/machine.h"
#include "bench/rates.h"
#include "engine/runner.h"
#include "kernels/runtime/kernel_time.h"

namespace octavo::bench {
namespace {

constexpr int kBlockTokens = 32;
constexpr int kStepRows = 512;  // per prefill step; the engine's default
// For costs: prompt tokens of one step, and how much longer the second context is.
constexpr int kCostRows[] = {16, 32, 64, 128, 256, kStepRows};
constexpr int kCostContext = 1024;
constexpr int kCostSequences = 8;  // at most, in the longer context

double median(std::vector<double> values) {
  OCTAVO_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

// Wall time since construction, and our kernels' share of it.
class KernelStopwatch {
 public:
  double seconds() const { return watch_.seconds(); }
  double kernel_seconds() const {
    return static_cast<double>(kernel_nanoseconds() - kernels_) * 1e-9;
  }

 private:
  Stopwatch watch_;
  int64_t kernels_ = kernel_nanoseconds();
};

// Several sequences in the cache, run step by step.
class Sequences {
 public:
  Sequences(int count, Runner& runner, const CachePlan& plan, PagePool& pool)
      : runner_(runner), plan_(plan) {
    for (int i = 0; i < count; ++i) pages_.emplace_back(plan, pool);
    last_.resize(pages_.size());
  }

  int length() const { return length_; }

  // Appends the same number of tokens to every sequence, in steps of at most kStepRows rows, and
  // keeps the next token of each.
  void prefill(const std::vector<std::vector<TokenId>>& prompts) {
    const auto tokens = static_cast<int>(prompts.front().size());
    const int whole = std::max(1, kStepRows / tokens);  // prompts per step
    const auto count = static_cast<int>(prompts.size());
    for (int first = 0; first < count; first += whole) {
      for (int start = 0; start < tokens; start += kStepRows) {
        const int rows = std::min(kStepRows, tokens - start);
        BatchBuilder builder(plan_);
        for (int i = first; i < std::min(first + whole, count); ++i) {
          const auto& prompt = prompts[static_cast<size_t>(i)];
          add(builder, i,
              std::span(prompt)
                  .subspan(static_cast<size_t>(start))
                  .first(static_cast<size_t>(rows)),
              length_ + start, start + rows == tokens);
        }
        const auto drawn = run(builder);
        std::copy(drawn.begin(), drawn.end(), last_.begin() + first);
      }
    }
    length_ += tokens;
  }

  // Generates one more token per sequence, greedily.
  void decode() {
    BatchBuilder builder(plan_);
    for (size_t i = 0; i < pages_.size(); ++i)
      add(builder, static_cast<int>(i), std::span(&last_[i], 1), length_, true);
    last_ = run(builder);
    ++length_;
  }

  // Truncates to the first `tokens` tokens. The last generated token remains the next input.
  void shrink_to(int tokens) {
    for (auto& pages : pages_) pages.shrink_to(tokens);
    length_ = tokens;
  }

 private:
  std::vector<TokenId> run(BatchBuilder& builder) {
    runner_.start(builder.build());
    return runner_.finish().tokens;
  }

  void add(BatchBuilder& builder, int sequence, std::span<const TokenId> tokens, int start,
           bool sampled) {
    SequencePages& pages = pages_[static_cast<size_t>(sequence)];
    const int end = start + static_cast<int>(tokens.size());
    OCTAVO_CHECK(pages.grow_to(end));
    const int first = builder.add_sequence(tokens, start, pages);
    pages.state().advance(start);
    if (sampled) {
      builder.sample_row(first + static_cast<int>(tokens.size()) - 1,
                         {.position = static_cast<uint32_t>(end)});
    }
  }

  Runner& runner_;
  const CachePlan& plan_;
  std::vector<SequencePages> pages_;
  std::vector<TokenId> last_;  // by sequence: the last generated token, input of the next step
  int length_ = 0;
};

class Bench {
 public:
  Bench(const Checkpoint& checkpoint, const ModelBenchOptions& options, const LoadProgress& loading)
      : options_(options),
        description_(describe_model(checkpoint, options.dtype)),
        weights_(step_weights(checkpoint, description_.plan)),
        source_(checkpoint, loading),
        model_(description_.plan, description_.dtype, source_),
        kv_(plan_cache(description_.plan.cache_specs(description_.dtype, KvFormat::kPlain),
                       kBlockTokens),
            page_count(), KernelPath::kNative),
        pool_(kv_.page_count()),
        runner_(model_, kv_, {}) {
    // As in the engine, so that the measurement matches it.
    const uint64_t step = step_bytes(description_, kStepRows, most_sequences());
    mx::set_memory_limit(step / 2);
    mx::set_cache_limit(step);
  }

  const ModelDescription& description() const { return description_; }

  StepTimes decode(int batch_size) { return decode(batch_size, options_.context); }

  StepTimes decode(int batch_size, int context) {
    Sequences sequences(batch_size, runner_, kv_.plan(), pool_);
    sequences.prefill(prompts(batch_size, context));
    std::vector<double> steps, rates;
    double outside = 0;
    decode_run(sequences, steps, outside);  // warms caches and touches the pages
    steps.clear();
    outside = 0;
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      std::vector<double> run;
      decode_run(sequences, run, outside);
      rates.push_back(static_cast<double>(batch_size) * static_cast<double>(run.size()) / sum(run));
      steps.insert(steps.end(), run.begin(), run.end());
    }
    const int middle = context + (options_.output_len + 1) / 2;
    return {
        .median_seconds = median(steps),
        .tokens_per_second = median(rates),
        .cost = decode_cost(description_, weights_.read_by(widen(batch_size)), batch_size, middle),
        .outside_kernels = outside / sum(steps)};
  }

  StepTimes prefill() {
    const auto prompt = prompts(1, options_.prefill_len);
    Sequences sequence(1, runner_, kv_.plan(), pool_);
    sequence.prefill(prompt);
    std::vector<double> times;
    double kernels = 0;
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      sequence.shrink_to(0);
      const KernelStopwatch watch;
      sequence.prefill(prompt);
      times.push_back(watch.seconds());
      kernels += watch.kernel_seconds();
    }
    StepCost cost;
    for (int start = 0; start < options_.prefill_len; start += kStepRows) {
      const int rows = std::min(kStepRows, options_.prefill_len - start);
      cost += prefill_cost(description_, weights_.read_by(widen(rows)), start, rows,
                           start + rows == options_.prefill_len);
    }
    return {.median_seconds = median(times),
            .tokens_per_second = options_.prefill_len / median(times),
            .cost = cost,
            .outside_kernels = 1 - kernels / sum(times)};
  }

  // `decoded`: the results for options.batch_sizes.
  MeasuredSteps costs(const std::vector<DecodeResult>& decoded) {
    MeasuredSteps steps{.prefill = {}, .decode = {}, .context = options_.context};
    for (const auto& [batch_size, times] : decoded)
      steps.decode.push_back({batch_size, times.median_seconds});
    std::ranges::sort(steps.decode, {}, &DecodeTime::batch_size);
    const auto repeated = std::ranges::unique(steps.decode, {}, &DecodeTime::batch_size);
    steps.decode.erase(repeated.begin(), repeated.end());
    for (const int rows : kCostRows) steps.prefill.push_back({rows, prefill_step(rows)});
    const int sequences = cost_sequences();
    const double added = decode(sequences, cost_context()).median_seconds -
                         decode_seconds(steps, sequences, options_.context);
    steps.seconds_per_cached_token = std::max(0.0, added / sequences / kCostContext);
    return steps;
  }

 private:
  int most_sequences() const { return *std::ranges::max_element(options_.batch_sizes); }
  int cost_sequences() const { return std::min(kCostSequences, most_sequences()); }
  int cost_context() const { return options_.context + kCostContext; }

  // Median seconds of one step with `rows` tokens of a prompt after the context.
  double prefill_step(int rows) {
    Sequences sequence(1, runner_, kv_.plan(), pool_);
    sequence.prefill(prompts(1, options_.context));
    const auto chunk = prompts(1, rows);
    std::vector<double> times;
    for (int repeat = -1; repeat < options_.repeats; ++repeat) {  // the first warms caches
      const Stopwatch watch;
      sequence.prefill(chunk);
      if (repeat >= 0) times.push_back(watch.seconds());
      sequence.shrink_to(options_.context);
    }
    return median(times);
  }

  int page_count() const {
    const CachePlan plan = plan_cache(
        description_.plan.cache_specs(description_.dtype, KvFormat::kPlain), kBlockTokens);
    const int pages =
        std::max(most_sequences() * plan.pages_for(options_.context + options_.output_len),
                 plan.pages_for(options_.prefill_len));
    if (!options_.costs) return pages;
    return std::max({pages, plan.pages_for(options_.context + kStepRows),
                     cost_sequences() * plan.pages_for(cost_context() + options_.output_len)});
  }

  std::vector<std::vector<TokenId>> prompts(int count, int tokens) {
    std::uniform_int_distribution<TokenId> any(0, description_.plan.vocab - 1);
    std::vector<std::vector<TokenId>> made(static_cast<size_t>(count));
    for (auto& prompt : made)
      for (int i = 0; i < tokens; ++i) prompt.push_back(any(random_));
    return made;
  }

  // Runs output_len steps after the contexts: appends the time of each, adds the time outside
  // kernels, and truncates back to the contexts.
  void decode_run(Sequences& sequences, std::vector<double>& steps, double& outside) {
    const int context = sequences.length();
    for (int i = 0; i < options_.output_len; ++i) {
      const KernelStopwatch watch;
      sequences.decode();
      steps.push_back(watch.seconds());
      outside += steps.back() - watch.kernel_seconds();
    }
    sequences.shrink_to(context);
  }

  const ModelBenchOptions& options_;
  ModelDescription description_;
  StepWeights weights_;
  WeightSource source_;
  DecoderModel model_;
  KvStore kv_;
  PagePool pool_;
  Runner runner_;
  std::mt19937 random_{0};
};

void require(bool holds, const char* message) {
  if (!holds) throw SetupError(message);
}

void validate(const ModelBenchOptions& options) {
  require(!options.batch_sizes.empty(), "--batch-size: give at least one");
  for (const int size : options.batch_sizes) require(size >= 1, "--batch-size: must be at least 1");
  require(options.context >= 1, "--context: must be at least 1");
  require(options.output_len >= 1, "--output-len: must be at least 1");
  require(options.prefill_len >= 0, "--prefill-len: must not be negative");
  require(options.repeats >= 1, "--repeats: must be at least 1");
  if (!options.costs) return;
  const auto [least, most] = std::ranges::minmax(options.batch_sizes);
  require(least < most, "--costs: give at least two different batch sizes with --batch-size");
}

}  // namespace

ModelBenchResult bench_model(const Checkpoint& checkpoint, const ModelBenchOptions& options,
                             const std::function<void(uint64_t done, uint64_t total)>& loading) {
  validate(options);
  measure_gpu_time();
  Bench bench(checkpoint, options, loading);
  ModelBenchResult result;
  result.model = bench.description();
  result.threads = compute_pool().threads();
  result.isa = active_kernels();
  for (const int size : options.batch_sizes) result.decode.push_back({size, bench.decode(size)});
  if (options.prefill_len > 0) result.prefill = bench.prefill();
  if (options.costs) result.costs = bench.costs(result.decode);
  return result;
}

}  // namespace octavo::bench
