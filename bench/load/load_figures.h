// load_figures.h - summarizes a load run with the definitions of `vllm bench serve`. Pure
// arithmetic. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/load_run.h"

namespace octavo::bench {

// Over the successful requests, in seconds; all zero if there are none.
struct LatencySummary {
  double mean = 0;
  double median = 0;
  double deviation = 0;                  // population, not sample
  std::vector<double> percentiles = {};  // in the requested order
};

// Limits in seconds for a request to count as good; nullopt: no limit.
struct ServiceLevel {
  std::optional<double> ttft = {};
  std::optional<double> tpot = {};
  std::optional<double> e2el = {};

  bool keeps(const RequestRecord& record) const;
};

struct FailureCount {
  std::string reason;
  size_t requests = 0;
};

struct LoadFigures {
  double seconds = 0;
  size_t completed = 0;
  size_t failed = 0;
  size_t good = 0;            // completed within the service level
  size_t chunks_counted = 0;  // completed, but output tokens are counted from chunks
  uint64_t input_tokens = 0;  // of completed requests, like output_tokens
  uint64_t output_tokens = 0;
  double peak_output_tokens = 0;  // in one second; at least the mean throughput
  size_t peak_concurrent = 0;     // open at any time within one second; may exceed max_concurrency
  LatencySummary ttft = {};       // from sending to the first chunk
  LatencySummary tpot = {};       // of answers with at least two tokens
  LatencySummary itl = {};        // between chunks with tokens, over all requests
  LatencySummary e2el = {};       // from sending to the last chunk
  std::vector<FailureCount> failures = {};  // most frequent first

  double per_second(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

// percents: from 0 to 100
LoadFigures load_figures(const LoadResult& result, const std::vector<double>& percents,
                         const ServiceLevel& level);

// Tokens of successful requests, per second since the start of the run.
std::vector<double> output_by_second(const LoadResult& result);

}  // namespace octavo::bench
