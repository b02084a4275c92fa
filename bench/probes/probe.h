// probe.h - loops that only read or only multiply, to measure the machine's peak rates. One file
// per instruction set, compiled for it. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"

namespace octavo::bench {

struct PeakLoop {
  double flops_per_round = 0;
  float (*run)(int64_t rounds) = nullptr;  // null: no such instruction
};

struct Probe {
  // Reads `bytes` (a multiple of 256) from an address aligned to 64.
  uint64_t (*read)(const std::byte* data, size_t bytes) = nullptr;
  PeakLoop fp32;
  PeakLoop bf16;
};

// The set must be among cpu::available_isas().
const Probe& probe_of(cpu::Isa isa);

// The instruction set's fastest loop for bf16 products with fp32 sums; its fp32 loop if it has no
// bf16 instruction.
const PeakLoop& bf16_peak_of(cpu::Isa isa);

namespace probes {
extern const Probe kScalar;
extern const Probe kNeon;
extern const Probe kAvx2;
extern const Probe kAvx512;
extern const Probe kAvx512Bf16;
extern const Probe kAmx;
}  // namespace probes

}  // namespace octavo::bench
