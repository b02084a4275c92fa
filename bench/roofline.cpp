#include "bench/roofline.h"

#include <algorithm>

#include "base/error.h"

namespace octavo::bench {
namespace {

double seconds_for(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

double limit_seconds(const Work& work, const Limit& limit) {
  return std::max(seconds_for(work.bytes, limit.bytes), seconds_for(work.flops, limit.flops));
}

bool memory_bound(const Work& work, const Limit& limit) {
  return seconds_for(work.bytes, limit.bytes) >= seconds_for(work.flops, limit.flops);
}

Fractions fractions_of(const Work& work, const Limit& limit, double seconds) {
  OCTAVO_CHECK(seconds > 0);
  return {.limit = limit_seconds(work, limit) / seconds,
          .bandwidth = seconds_for(work.bytes, limit.bytes) / seconds,
          .peak = seconds_for(work.flops, limit.flops) / seconds};
}

Limit between(const Limit& before, const Limit& after) {
  return {.bytes = (before.bytes + after.bytes) / 2, .flops = (before.flops + after.flops) / 2};
}

double median(std::vector<double> values) {
  OCTAVO_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace octavo::bench
