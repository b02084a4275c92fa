// load_run.h - sends a load of requests to a server and hears the streamed answers. One thread: the
// caller's. No MLX.
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
  std::vector<double> arrivals = {};  // seconds from the start, ascending, one for each request
  int max_concurrency = 0;            // 0: no bound. Who finds no place waits, and is sent later
  double timeout_seconds = 600;       // of one request
};

struct LoadProgress {
  size_t done = 0;  // requests, failed ones included
  size_t total = 0;
  uint64_t chunks = 0;  // with tokens, of all requests
};

struct LoadResult {
  double seconds = 0;                       // from the start to the last answer's end
  std::vector<RequestRecord> records = {};  // as the requests are ordered
};

// What becomes of a request stands in its record. Throws SetupError when the host has no address.
LoadResult run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests,
                    const std::function<void(const LoadProgress&)>& on_progress);

}  // namespace octavo::bench
