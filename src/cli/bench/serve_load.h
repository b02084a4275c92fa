// serve_load.h - what is asked of the server before a load, and the load itself. No MLX.
#pragma once

#include <vector>

#include "bench/load/load_run.h"
#include "cli/bench/serve_flags.h"

namespace octavo {

// Returns once the server answers /health, whatever it says but 5xx: not every server knows that
// path. Throws SetupError when it does not in time.
void wait_until_ready(const BenchServeFlags& flags, const bench::ServerUrl& url);

// Where and how the requests are sent. Asks the server for its model when none is named. Throws
// SetupError.
bench::LoadOptions load_options(const BenchServeFlags& flags, const bench::ServerUrl& url);

// From the dataset; `model` is for counting tokens on the server. Throws SetupError.
std::vector<bench::LoadRequest> load_requests(const BenchServeFlags& flags,
                                              const bench::ServerUrl& url,
                                              const std::string& model);

}  // namespace octavo
