// serve_load.h - prepares the load: waits for the server and makes the requests. No MLX.
#pragma once

#include <vector>

#include "bench/load/load_run.h"
#include "cli/bench/serve_flags.h"

namespace octavo {

// Returns once the server responds on /health with a status below 500: not every server has that
// path. Throws SetupError on timeout.
void wait_until_ready(const BenchServeFlags& flags, const bench::ServerUrl& url);

// Returns where and how to send the requests. Queries the server for a model if --model is not
// given. Throws SetupError.
bench::LoadOptions load_options(const BenchServeFlags& flags, const bench::ServerUrl& url);

// Makes the requests from the dataset. `model` is used to count tokens on the server. Throws
// SetupError.
std::vector<bench::LoadRequest> load_requests(const BenchServeFlags& flags,
                                              const bench::ServerUrl& url,
                                              const std::string& model);

}  // namespace octavo
