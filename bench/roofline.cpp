#include "bench/roofline.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

double percentile(std::vector<double> values, double percent) {
  OCTAVO_CHECK(!values.empty() && percent >= 0 && percent <= 100);
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

}  // namespace octavo::bench
