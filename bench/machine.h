// machine.h - the machine's limits: memory and cache bandwidth, and the matrix peak of each
// instruction set. No MLX.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::bench {

// Over several passes, per second.
struct Rate {
  double best = 0;
  double median = 0;
};

struct ThreadRates {
  Rate one;
  Rate all;
};

struct PeakRate {
  std::string isa;
  std::string dtype;  // of the factors; sums are float32
  ThreadRates flops;
};

struct MachineLimits {
  int threads = 0;  // of the compute pool
  std::string isa;  // in use
  std::vector<std::string> isas;
  size_t l2_bytes = 0;    // of one core
  size_t l3_bytes = 0;    // as reported by the system; a virtual machine may not get all of it
  size_t read_bytes = 0;  // read by the memory passes
  ThreadRates memory;     // bytes
  Rate l2;                // bytes, one core
  Rate l3;
  std::vector<PeakRate> peaks;
};

// Called before each measurement with its name.
using Progress = std::function<void(std::string_view)>;

struct MachineOptions {
  size_t read_bytes = size_t{2} << 30;  // far more than any cache
  int passes = 5;
  double peak_seconds = 0.1;  // of one pass of a peak loop
  Progress progress;          // may be empty
};

// Small and fast, to check that it works; the figures are meaningless.
MachineOptions quick_machine_options();

MachineLimits measure_machine(const MachineOptions& options);

}  // namespace octavo::bench
