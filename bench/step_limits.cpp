#include "bench/step_limits.h"

#include <algorithm>

#include "bench/machine.h"
#include "bench/rates.h"
#include "kernels/cpu/isa.h"
#include "kernels/runtime/device.h"

namespace octavo::bench {
namespace {

// The kernels' products keep sums in float32, for every data type.
double gpu_peak(const GpuLimits& gpu) {
  for (const GpuPeak& peak : gpu.peaks)
    if (peak.dtype == name_of(DType::kFloat32)) return peak.flops.best;
  return 0;
}

}  // namespace

StepLimits measure_step_limits(DType dtype) {
  constexpr size_t kReadBytes = size_t{1} << 30;
  constexpr int kPasses = 3;
  constexpr double kPeakSeconds = 0.1;
  if (device_facts().kind == DeviceKind::kMetal) {
    const MachineOptions options{.passes = kPasses, .progress = {}};
    const GpuLimits gpu = measure_gpu(options, {.read_bytes = kReadBytes});
    return {.read_gbps = gpu.memory.best * 1e-9, .matrix_tflops = gpu_peak(gpu) * 1e-12};
  }
  const cpu::Isa isa = cpu::active_isa();
  const PeakLoop& peak = dtype == DType::kBFloat16 ? bf16_peak_of(isa) : probe_of(isa).fp32;
  const ReadBuffer memory(kReadBytes);
  StepLimits limits;
  for (int pass = 0; pass < kPasses; ++pass) {
    limits.read_gbps = std::max(limits.read_gbps, read_rate(memory.bytes(), Threads::kAll) * 1e-9);
    limits.matrix_tflops =
        std::max(limits.matrix_tflops, peak_rate(peak, Threads::kAll, kPeakSeconds) * 1e-12);
  }
  return limits;
}

StepLimits between(const StepLimits& before, const StepLimits& after) {
  return {.read_gbps = (before.read_gbps + after.read_gbps) / 2,
          .matrix_tflops = (before.matrix_tflops + after.matrix_tflops) / 2};
}

}  // namespace octavo::bench
