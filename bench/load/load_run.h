// load_run.h - sends a load of requests to a server and records the streamed responses. Runs on the
// calling thread. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/load_request.h"
#include "bench/load/request_body.h"
#include "bench/load/server_url.h"

namespace octavo::bench {

struct LoadOptions {
  ServerUrl url = {};
  std::string endpoint = "/v1/completions";
  std::string api_key = {};
  BodyOptions body = {};
  std::vector<double> arrivals = {};  // seconds since start, ascending, one per request
  int max_concurrency = 0;       // 0: unlimited. Requests above the limit wait and are sent later
  double timeout_seconds = 600;  // per request
};

struct LoadProgress {
  size_t done = 0;  // requests, failed ones included
  size_t total = 0;
  uint64_t chunks = 0;  // with tokens, over all requests
};

struct LoadResult {
  double seconds = 0;                       // from the start to the end of the last response
  std::vector<RequestRecord> records = {};  // in the order of the requests
};

// Failed requests are reported in their records. Throws SetupError if the host name cannot be
// resolved.
LoadResult run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests,
                    const std::function<void(const LoadProgress&)>& on_progress);

}  // namespace octavo::bench
