// arrivals.h - arrival times of the requests of a load. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::bench {

// Ascending times in seconds of `count` Poisson arrivals at `rate` per second; an infinite rate
// means all at once. As in vLLM, the times are scaled so that the last is at count / rate: every
// seed has the same mean rate. The same seed gives the same times on every platform.
std::vector<double> poisson_arrivals(size_t count, double rate, uint64_t seed);

}  // namespace octavo::bench
