// step_costs.h - recent step times by number of rows. No MLX. Engine thread only.
#pragma once

#include <array>
#include <optional>

namespace octavo {

class StepCosts {
 public:
  // A step of this many rows, all of which draw, took `seconds`.
  void observe_step(int rows, double seconds);
  // The device was idle for `seconds` because a step could not be queued ahead.
  void observe_gap(double seconds);

  // Interpolates between measured sizes; outside them returns the nearest. 0 if nothing was
  // measured.
  double seconds(int rows) const;
  double gap() const { return gap_.value_or(0); }

 private:
  static constexpr int kBuckets = 33;
  static int bucket_of(int rows);

  struct Bucket {
    double rows = 0;
    double seconds = 0;
    bool measured = false;
  };
  std::array<Bucket, kBuckets> buckets_ = {};
  std::optional<double> gap_ = {};
};

}  // namespace octavo
