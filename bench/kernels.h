// kernels.h - times the kernels and holds each time to the limit measured around it. No MLX.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/roofline.h"

namespace octavo::bench {

struct KernelResult {
  std::string op;
  std::string shape;
  std::string dtype;
  std::string isa;
  double seconds = 0;   // of one call; the median, as are all of the following
  Work work;            // of one call
  Limit limit;          // measured around the calls
  Fractions fractions;  // of pairs of limit and call, so that a slow minute cancels out
  // The rival's time over ours: above 1 we are faster.
  std::optional<double> vs_mlx;
  std::optional<double> vs_onednn;
  // Our time over that of a product free to sum in any order, less 1.
  std::optional<double> invariance_cost;
};

struct KernelOptions {
  std::string filter;  // see matches_filter; the label is "op shape dtype"
  int repeats = 5;
  bool mlx = true;     // compare with MLX's own operations, the slow part
  bool quick = false;  // little memory and small shapes: the figures mean nothing
  Progress progress;   // may be empty
};

std::vector<KernelResult> bench_kernels(const KernelOptions& options);

}  // namespace octavo::bench
