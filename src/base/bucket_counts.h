// bucket_counts.h - a histogram with Prometheus-style buckets. One thread at a time; cheap to copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

class BucketCounts {
 public:
  // `bounds`: upper bounds, inclusive and ascending; must outlive this object.
  explicit BucketCounts(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);
    ++counts_[static_cast<size_t>(bound - bounds_.begin())];
    sum_ += value;
  }

  std::span<const double> bounds() const { return bounds_; }
  // One count per bound plus one for larger values; not cumulative.
  const std::vector<uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace octavo
