// gpu_probe.h - measures the GPU's current speed with the probes of kernels/metal/probe.h. Shows no
// MLX.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/dtype.h"

namespace octavo::bench {

struct GpuProbeOptions {
  size_t read_bytes = size_t{1} << 30;  // of one pass; rounded up to a whole threadgroup's share
  int fma_groups = 2048;  // threadgroups; enough to fill the largest GPU several times
  int fma_rounds = 4096;  // of one pass
};

// The device must be Metal, or the simulator must be installed.
class GpuProbe {
 public:
  explicit GpuProbe(const GpuProbeOptions& options);
  ~GpuProbe();
  GpuProbe(GpuProbe&&) noexcept;

  size_t read_bytes() const;
  double read_rate();            // bytes per second
  double fma_rate(DType dtype);  // float32 or float16; operations per second

  // "GPU time of command buffers", or "wall time of synchronised launches" if the platform has no
  // GPU time; the latter includes submitting a launch and waiting for it.
  std::string_view clock() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo::bench
