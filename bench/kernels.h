// kernels.h - times the kernels and compares each with the limit measured around it. No MLX.
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
  double seconds = 0;   // of one call; a median, like the following fields
  Work work;            // of one call
  Limit limit;          // measured around the calls
  Fractions fractions;  // from pairs of limit and call, so that slow phases cancel out
  // The other implementation's time divided by ours: above 1, ours is faster.
  std::optional<double> vs_mlx;
  std::optional<double> vs_onednn;
  // Our time divided by that of a product that may sum in any order, minus 1.
  std::optional<double> invariance_cost;
};

struct KernelOptions {
  std::string filter;  // see matches_filter; the label is "op shape dtype"
  int repeats = 5;
  bool mlx = true;     // compare with MLX's own operations, the slow part
  bool quick = false;  // little memory and small shapes: the figures are meaningless
  Progress progress;   // may be empty
};

std::vector<KernelResult> bench_kernels(const KernelOptions& options);

}  // namespace octavo::bench
