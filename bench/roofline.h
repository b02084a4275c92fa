// roofline.h - compares measured times with the machine's limits. Pure arithmetic. No MLX.
#pragma once

#include <vector>

namespace octavo::bench {

// The minimum work of one call.
struct Work {
  double bytes = 0;  // read from memory
  double flops = 0;
};

// The machine's speed during the measurement, per second. Zero: unknown, no limit.
struct Limit {
  double bytes = 0;
  double flops = 0;
};

// The minimum time for the work: memory and arithmetic overlap, so the longer of the two.
double limit_seconds(const Work& work, const Limit& limit);

bool memory_bound(const Work& work, const Limit& limit);

// 1 is the limit itself. A part with an unknown limit is 0.
struct Fractions {
  double limit = 0;      // of limit_seconds()
  double bandwidth = 0;  // of memory bandwidth alone
  double peak = 0;       // of arithmetic alone
};
Fractions fractions_of(const Work& work, const Limit& limit, double seconds);

// The limit varies over time; the value for a measurement is the mean of before and after.
Limit between(const Limit& before, const Limit& after);

// values: not empty. For an even count, the mean of the middle two.
double median(std::vector<double> values);

// values: not empty; percent: 0 to 100. Interpolates linearly, like numpy.
double percentile(std::vector<double> values, double percent);

}  // namespace octavo::bench
