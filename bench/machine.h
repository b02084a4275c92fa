// machine.h - the machine's limits: memory and cache bandwidth, and the matrix peak of each
// instruction set and of the GPU. No MLX.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_probe.h"
#include "bench/pool_cost.h"

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

struct GpuPeak {
  std::string dtype;
  Rate flops;
};

struct GpuLimits {
  std::string name;
  std::string clock;  // see GpuProbe::clock
  size_t read_bytes = 0;
  Rate memory;  // bytes
  std::vector<GpuPeak> peaks;
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
  std::vector<PoolCost> pool;    // by number of threads
  std::optional<GpuLimits> gpu;  // if the device in use is a GPU
};

// Which kernels the device in use runs: "metal", or the CPU's instruction set.
std::string active_kernels();

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

// The GPU alone. measure_machine() calls it if the device in use is one.
GpuLimits measure_gpu(const MachineOptions& options, const GpuProbeOptions& probe);

}  // namespace octavo::bench
