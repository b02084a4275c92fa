#include "bench/load/arrivals.h"

#include <cmath>
#include <random>

#include "base/error.h"

namespace octavo::bench {

std::vector<double> poisson_arrivals(size_t count, double rate, uint64_t seed) {
  OCTAVO_CHECK(rate > 0);
  std::vector<double> times(count, 0.0);
  if (count == 0 || std::isinf(rate)) return times;
  // The generator is portable; the standard distributions are not.
  std::mt19937_64 random(seed);
  double now = 0;
  for (double& time : times) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1.0p-53;  // in [0, 1)
    now += -std::log1p(-uniform);
    time = now;
  }
  if (now == 0) return times;
  const double stretch = static_cast<double>(count) / rate / now;
  for (double& time : times) time *= stretch;
  return times;
}

}  // namespace octavo::bench
