// isa.h - which instruction set the CPU kernels use, chosen once per process, and the state that
// every computing thread needs. No MLX.
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
  kAvx512Bf16,  // plus conversions to bfloat16 (BF16) and dot products of bytes (VNNI)
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

// Rounding to nearest; denormal inputs and results count as zero, as they do in the tile unit, which
// has no other mode (docs/arithmetic.md). Both functions are about the calling thread.
void set_float_state();
bool has_float_state();

// Sets the float state, and the tile configuration if the active set has tiles. Every piece of work
// calls it on its own thread, because MLX and other libraries may have changed the thread's state.
void prepare_thread();

}  // namespace octavo::cpu
