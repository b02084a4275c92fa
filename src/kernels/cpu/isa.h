// isa.h - which instruction set the CPU kernels use. It is chosen once per process and never
// depends on the shape of the work, because two sets may round differently. No MLX.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::cpu {

// Slowest first. Every x86 set includes the ones before it.
enum class Isa : uint8_t {
  kScalar,      // the baseline of the architecture
  kNeon,        // arm64
  kAvx2,        // AVX2, FMA and F16C
  kAvx512,      // AVX-512 F, BW, VL, DQ
  kAvx512Bf16,  // plus its dot products of bfloat16 (BF16) and of bytes (VNNI)
  kAmx,         // plus the bfloat16 tile unit
};

std::string_view name_of(Isa isa);  // "avx512-bf16", as OCTAVO_ISA takes it

// The sets that this machine supports and this build contains (OCTAVO_ISAS), slowest first.
const std::vector<Isa>& available_isas();

// OCTAVO_ISA, or the fastest available. Throws SetupError if OCTAVO_ISA names a set that is not
// available.
Isa active_isa();

// For tests and benchmarks that compare sets within one process. No kernel may be running.
void use_isa(Isa isa);

// Sets rounding to nearest, no flushing of denormals, and the tile configuration if the active set
// has tiles. Every piece of work calls it on its own thread, because MLX and other libraries may
// have changed the thread's state.
void prepare_thread();

}  // namespace octavo::cpu
