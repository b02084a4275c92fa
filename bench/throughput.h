// throughput.h - submits a mix of requests to an engine all at once and measures the throughput and
// where the time goes. Shows no MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "bench/mix_cost.h"
#include "engine/engine.h"

namespace octavo::bench {

struct ThroughputOptions {
  EngineOptions engine = {};
  std::vector<MixRequest> requests = {};
  uint32_t seed = 0;  // for the prompts, which are random token ids
};

// Over the requests, in seconds.
struct Spread {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
};

struct ThroughputResult {
  ModelDescription model = {};
  MemoryPlan memory = {};
  StepWeights weights = {};
  double seconds = 0;  // from the first request to the end of the last answer
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  SchedulerStats scheduler = {};  // of the run
  LoopTimes times = {};           // of the run; queueing overlaps the kernels
  double kernel_seconds = 0;
  Spread first_token = {};           // since the first request
  Spread token = {};                 // between tokens after the first
  uint64_t peak_resident_bytes = 0;  // sampled during the run

  double outside_kernels() const { return 1 - kernel_seconds / seconds; }
};

struct ThroughputProgress {
  std::function<void(uint64_t done, uint64_t total)> loading = {};    // bytes
  std::function<void(uint64_t done, uint64_t total)> answering = {};  // requests
};

// Loads the checkpoint, runs one short request to warm up, and measures. Every answer has exactly
// the requested number of tokens. Throws SetupError; if a request does not fit the context, before
// loading.
ThroughputResult bench_throughput(const Checkpoint& checkpoint, const ThroughputOptions& options,
                                  const ThroughputProgress& progress);

// From {"requests": [{"prompt_tokens": 172, "output_tokens": 183}, ...]}. Throws SetupError.
std::vector<MixRequest> read_request_mix(const std::filesystem::path& path);

}  // namespace octavo::bench
