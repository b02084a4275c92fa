// roofline.h - how much of what a machine can do a measured time amounts to. Pure arithmetic. No
// MLX.
#pragma once

#include <vector>

namespace octavo::bench {

// What one call cannot avoid.
struct Work {
  double bytes = 0;  // read from memory
  double flops = 0;
};

// What the machine could do at the moment of measuring, per second. Zero: not known, no limit.
struct Limit {
  double bytes = 0;
  double flops = 0;
};

// The least time the work can take: memory and arithmetic overlap, so the longer of the two.
double limit_seconds(const Work& work, const Limit& limit);

bool memory_bound(const Work& work, const Limit& limit);

// 1 is the limit itself. A part with an unknown limit is 0.
struct Fractions {
  double limit = 0;      // of the longer of the two
  double bandwidth = 0;  // of memory alone
  double peak = 0;       // of arithmetic alone
};
Fractions fractions_of(const Work& work, const Limit& limit, double seconds);

// The limit wanders; what held during a measurement is taken as the mean of before and after.
Limit between(const Limit& before, const Limit& after);

// Of at least one number; the mean of the middle two when they are even in number.
double median(std::vector<double> values);

// Of at least one number, `percent` from 0 to 100; between two of them in proportion, as numpy
// does.
double percentile(std::vector<double> values, double percent);

}  // namespace octavo::bench
