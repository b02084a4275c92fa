#include "bench/step_limits.h"

#include <algorithm>

#include "bench/rates.h"
#include "kernels/cpu/isa.h"

namespace octavo::bench {

StepLimits measure_step_limits(DType dtype) {
  constexpr size_t kReadBytes = size_t{1} << 30;
  constexpr int kPasses = 3;
  constexpr double kPeakSeconds = 0.1;
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
