#include "scheduler/step_costs.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// Other processes can make a step slower but not faster, so faster times get more weight.
double nearer(double value, double sample) {
  return value + (sample < value ? 0.5 : 0.1) * (sample - value);
}

}  // namespace

int StepCosts::bucket_of(int rows) {
  if (rows <= 8) return std::max(0, rows - 1);
  const int behind = static_cast<int>(std::ceil(4 * std::log2(rows / 8.0)));
  return std::min(7 + behind, kBuckets - 1);
}

void StepCosts::observe_step(int rows, double seconds) {
  Bucket& bucket = buckets_[static_cast<size_t>(bucket_of(rows))];
  if (!bucket.measured) {
    bucket = {static_cast<double>(rows), seconds, true};
    return;
  }
  bucket.rows += 0.2 * (rows - bucket.rows);
  bucket.seconds = nearer(bucket.seconds, seconds);
}

void StepCosts::observe_gap(double seconds) { gap_ = gap_ ? nearer(*gap_, seconds) : seconds; }

double StepCosts::seconds(int rows) const {
  const Bucket* below = nullptr;
  for (const Bucket& bucket : buckets_) {
    if (!bucket.measured) continue;
    if (bucket.rows >= rows) {
      if (below == nullptr) return bucket.seconds;
      const double part = (rows - below->rows) / (bucket.rows - below->rows);
      return below->seconds + part * (bucket.seconds - below->seconds);
    }
    below = &bucket;
  }
  return below == nullptr ? 0 : below->seconds;
}

}  // namespace octavo
