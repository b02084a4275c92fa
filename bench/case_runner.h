// case_runner.h - measures one case after the other, each in turns with the machine's limit and
// with its rivals. No MLX.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/kernels.h"
#include "bench/rates.h"

namespace octavo::bench {

// Does the operation so many times, each time on memory not touched lately.
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
  const PeakLoop* peak;  // the arithmetic it is held to
  Contender ours;
  Contender mlx = {};  // rivals may be empty
  Contender onednn = {};
  Contender free_order = {};
};

class CaseRunner {
 public:
  explicit CaseRunner(const KernelOptions& options);

  bool wants(const CaseName& name) const;
  bool quick() const { return options_.quick; }
  bool mlx() const { return options_.mlx; }
  // Copies of something of this size that no cache can hold together.
  int cold_copies(double bytes) const;

  void run(const Case& c);
  const std::vector<KernelResult>& results() const { return results_; }

 private:
  Limit sample_limit(const PeakLoop& peak);

  const KernelOptions& options_;
  ReadBuffer memory_;
  size_t window_begin_ = 0;  // of the memory, read next
  std::vector<KernelResult> results_;
};

}  // namespace octavo::bench
