// arrivals.h - when each request of a load comes. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::bench {

// Seconds from the start, ascending, of `count` Poisson arrivals at `rate` per second; an infinite
// rate is all at once. As vLLM does, the times are stretched so that the last is at count / rate:
// every seed asks for the same mean rate. The same seed gives the same times everywhere.
std::vector<double> poisson_arrivals(size_t count, double rate, uint64_t seed);

}  // namespace octavo::bench
