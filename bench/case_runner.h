// case_runner.h - measures cases, alternating each with the machine's limit and with other
// implementations. No MLX.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/gpu_probe.h"
#include "bench/kernels.h"
#include "bench/rates.h"

namespace octavo::bench {

// Runs the operation `calls` times, each time on memory that is not in the cache.
using Contender = std::function<void(int calls)>;

struct CaseName {
  std::string op;
  std::string shape;
  std::string dtype;

  std::string label() const { return op + " " + shape + " " + dtype; }
};

struct Case {
  CaseName name;
  Work work;             // of one call
  const PeakLoop* peak;  // the arithmetic limit it is compared with
  Contender ours;
  Contender mlx = {};  // this and the following may be empty
  Contender onednn = {};
  Contender free_order = {};
};

class CaseRunner {
 public:
  explicit CaseRunner(const KernelOptions& options);

  bool wants(const CaseName& name) const;
  bool quick() const { return options_.quick; }
  bool mlx() const { return options_.mlx; }
  // The number of copies of data of this size that together exceed every cache.
  int cold_copies(double bytes) const;

  void run(const Case& c);
  const std::vector<KernelResult>& results() const { return results_; }

 private:
  Limit sample_limit(const PeakLoop& peak);

  const KernelOptions& options_;
  std::optional<GpuProbe> gpu_;  // if the device in use is a GPU: its limits replace the CPU's
  ReadBuffer memory_;
  size_t window_begin_ = 0;  // next part of the memory to read
  std::vector<KernelResult> results_;
};

}  // namespace octavo::bench
