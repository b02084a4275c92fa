// load_figures.h - what a load run amounts to, defined as `vllm bench serve` defines it. Pure
// arithmetic. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/load_run.h"

namespace octavo::bench {

// Of the answered requests, in seconds; all zero when there is nothing to summarise.
struct LatencySummary {
  double mean = 0;
  double median = 0;
  double deviation = 0;                  // of the whole, not of a sample
  std::vector<double> percentiles = {};  // as asked for
};

// Bounds in seconds that a request must keep to count as good; none: no bound.
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
  size_t chunks_counted = 0;  // completed, but their output tokens are only counted chunks
  uint64_t input_tokens = 0;  // of completed requests, as the output tokens
  uint64_t output_tokens = 0;
  double peak_output_tokens = 0;  // in one second: chunks with tokens
  size_t peak_concurrent = 0;     // open at any time of one second, so it may pass the bound
  LatencySummary ttft = {};       // from sending to the first chunk
  LatencySummary tpot = {};       // of answers with two tokens or more
  LatencySummary itl = {};        // between chunks with tokens, over all requests
  LatencySummary e2el = {};       // from sending to the last chunk
  std::vector<FailureCount> failures = {};  // the most frequent first

  double per_second(uint64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

// percents: from 0 to 100
LoadFigures load_figures(const LoadResult& result, const std::vector<double>& percents,
                         const ServiceLevel& level);

// Chunks with tokens of answered requests, by whole second since the run began.
std::vector<double> output_by_second(const LoadResult& result);

}  // namespace octavo::bench
