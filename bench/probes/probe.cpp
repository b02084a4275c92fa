#include "bench/probes/probe.h"

namespace octavo::bench {

const Probe& probe_of(cpu::Isa isa) {
  switch (isa) {
#ifdef __x86_64__
    case cpu::Isa::kAvx2:
      return probes::kAvx2;
    case cpu::Isa::kAvx512:
      return probes::kAvx512;
    case cpu::Isa::kAvx512Bf16:
      return probes::kAvx512Bf16;
    case cpu::Isa::kAmx:
      return probes::kAmx;
#elif defined(__aarch64__)
    case cpu::Isa::kNeon:
      return probes::kNeon;
#endif
    default:
      return probes::kScalar;
  }
}

const PeakLoop& bf16_peak_of(cpu::Isa isa) {
  const Probe& probe = probe_of(isa);
  return probe.bf16.run != nullptr ? probe.bf16 : probe.fp32;
}

}  // namespace octavo::bench
