#include "bench/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/system_memory.h"
#include "bench/rates.h"
#include "bench/roofline.h"
#include "engine/plan_engine.h"
#include "kernels/runtime/kernel_time.h"

namespace octavo::bench {
namespace {

// The tokens of one request; written by the engine thread until the engine is idle.
struct ReceivedTokens {
  int tokens = 0;
  double first_seconds = 0;
  double last_seconds = 0;
  std::string error = {};
};

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .p50 = percentile(values, 50),
          .p99 = percentile(values, 99)};
}

// Returns the difference of two sets of counters.
SchedulerStats since(const SchedulerStats& before, SchedulerStats now) {
  now.steps -= before.steps;
  now.preemptions -= before.preemptions;
  now.failed_steps -= before.failed_steps;
  now.prefix_queries -= before.prefix_queries;
  now.prefix_hits -= before.prefix_hits;
  now.prompt_tokens -= before.prompt_tokens;
  now.decode_tokens -= before.decode_tokens;
  now.generated_tokens -= before.generated_tokens;
  return now;
}

LoopTimes since(const LoopTimes& before, const LoopTimes& now) {
  return {.scheduling = now.scheduling - before.scheduling,
          .queueing = now.queueing - before.queueing,
          .waiting = now.waiting - before.waiting};
}

class Run {
 public:
  Run(const Checkpoint& checkpoint, const EngineOptions& engine, const ThroughputOptions& options,
      const ThroughputProgress& progress)
      : options_(options),
        progress_(progress),
        random_(options.seed),
        engine_(checkpoint, engine, progress.loading) {}

  void warm_up() {
    engine_.submit(request_of({.prompt_tokens = 8, .output_tokens = 2}), [](const Update&) {});
    wait();
    engine_.reset_prefix_cache();
  }

  ThroughputResult measure() {
    std::vector<Request> requests;
    for (const MixRequest& wanted : options_.requests) requests.push_back(request_of(wanted));
    received_.resize(requests.size());
    const EngineStats before = engine_.stats();
    const int64_t kernels = kernel_nanoseconds();
    watch_ = Stopwatch();
    for (size_t i = 0; i < requests.size(); ++i)
      engine_.submit(std::move(requests[i]),
                     [this, i](const Update& u) { receive(received_[i], u); });
    wait();
    ThroughputResult result;
    result.seconds = watch_.seconds();
    result.kernel_seconds = static_cast<double>(kernel_nanoseconds() - kernels) * 1e-9;
    const EngineStats after = engine_.stats();
    result.scheduler = since(before.scheduler, after.scheduler);
    result.times = since(before.times, after.times);
    result.memory = engine_.memory();
    result.peak_resident_bytes = peak_resident_bytes_;
    summarise(result);
    return result;
  }

 private:
  Request request_of(const MixRequest& wanted) {
    std::uniform_int_distribution<TokenId> any(0, engine_.model().plan.vocab - 1);
    Request request{.prompt = {}, .max_tokens = wanted.output_tokens, .ignore_eos = true};
    for (int i = 0; i < wanted.prompt_tokens; ++i) request.prompt.push_back(any(random_));
    return request;
  }

  void receive(ReceivedTokens& received, const Update& update) {
    received.last_seconds = watch_.seconds();
    if (received.tokens == 0) received.first_seconds = received.last_seconds;
    received.tokens += static_cast<int>(update.tokens.size());
    if (!update.finish) return;
    received.error = update.error;
    answered_.fetch_add(1, std::memory_order_relaxed);
  }

  void wait() {
    constexpr auto kEvery = std::chrono::milliseconds(10);
    bool idle = false;
    while (!idle) {
      idle = engine_.wait_until_idle(kEvery);
      peak_resident_bytes_ = std::max(peak_resident_bytes_, resident_bytes());
      if (progress_.answering)
        progress_.answering(answered_.load(std::memory_order_relaxed), received_.size());
    }
  }

  void summarise(ThroughputResult& result) const {
    std::vector<double> first, between;
    for (size_t i = 0; i < received_.size(); ++i) {
      const ReceivedTokens& received = received_[i];
      const MixRequest& wanted = options_.requests[i];
      if (received.tokens != wanted.output_tokens) {
        throw SetupError(fmt::format("request {} ended after {} of {} tokens{}{}", i,
                                     received.tokens, wanted.output_tokens,
                                     received.error.empty() ? "" : ": ", received.error));
      }
      result.prompt_tokens += static_cast<uint64_t>(wanted.prompt_tokens);
      result.output_tokens += static_cast<uint64_t>(received.tokens);
      first.push_back(received.first_seconds);
      if (received.tokens > 1)
        between.push_back((received.last_seconds - received.first_seconds) / (received.tokens - 1));
    }
    result.first_token = spread_of(first);
    result.token = spread_of(between);
  }

  const ThroughputOptions& options_;
  const ThroughputProgress& progress_;
  std::mt19937 random_;
  Stopwatch watch_;
  std::vector<ReceivedTokens> received_;
  std::atomic<uint64_t> answered_ = 0;
  uint64_t peak_resident_bytes_ = 0;
  Engine engine_;  // destroyed first: its thread writes to the members above
};

void require_room(const std::vector<MixRequest>& requests, int max_model_len) {
  if (requests.empty()) throw SetupError("the dataset contains no requests");
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& [prompt, output] = requests[i];
    if (prompt < 1 || output < 1)
      throw SetupError(
          fmt::format("request {}: prompt_tokens and output_tokens must be at least 1", i));
    if (int64_t{prompt} + output > max_model_len) {
      throw SetupError(
          fmt::format("request {}: {} prompt tokens and {} output tokens exceed the context of {}; "
                      "see --max-model-len",
                      i, prompt, output, max_model_len));
    }
  }
}

int positive_count(const nlohmann::json& request, const char* name) {
  const auto& count = request.at(name);
  if (!count.is_number_unsigned())
    throw SetupError(fmt::format("{} is not a non-negative integer", name));
  return count.get<int>();
}

}  // namespace

ThroughputResult bench_throughput(const Checkpoint& checkpoint, const ThroughputOptions& options,
                                  const ThroughputProgress& progress) {
  EngineOptions engine_options = options.engine;
  engine_options.max_open_requests =
      std::max(engine_options.max_open_requests, static_cast<int>(options.requests.size()));
  const ModelDescription model = describe_model(checkpoint, engine_options.dtype);
  require_room(options.requests, plan_engine_memory(model, engine_options).max_model_len);
  measure_gpu_time();
  Run run(checkpoint, engine_options, options, progress);
  run.warm_up();
  ThroughputResult result = run.measure();
  result.model = model;
  result.weights = step_weights(checkpoint, model.plan);
  return result;
}

std::vector<MixRequest> read_request_mix(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw SetupError(fmt::format("{}: cannot be read", path.string()));
  try {
    std::vector<MixRequest> mix;
    const auto json = nlohmann::json::parse(file);
    for (const auto& request : json.at("requests")) {
      mix.push_back({.prompt_tokens = positive_count(request, "prompt_tokens"),
                     .output_tokens = positive_count(request, "output_tokens")});
    }
    return mix;
  } catch (const std::exception& error) {
    throw SetupError(fmt::format(
        "{}: {}; expected {{\"requests\": [{{\"prompt_tokens\": 1, \"output_tokens\": 1}}, ...]}}",
        path.string(), error.what()));
  }
}

}  // namespace octavo::bench
