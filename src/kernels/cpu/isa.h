// isa.h - which instruction set the CPU kernels use. Chosen once per process, never by the shape of
// the work: two ISAs may round differently. No MLX.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::cpu {

// Slowest first. Every x86 set includes the ones before it.
enum class Isa : uint8_t {
  kScalar,      // what every machine of the architecture has
  kNeon,        // arm64
  kAvx2,        // AVX2, FMA and F16C
  kAvx512,      // AVX-512 F, BW, VL, DQ
  kAvx512Bf16,  // and its bfloat16 dot products
  kAmx,         // and the bfloat16 tile unit
};

std::string_view name_of(Isa isa);  // "avx512-bf16", as OCTAVO_ISA takes it

// Those this machine can run, slowest first.
const std::vector<Isa>& available_isas();

// OCTAVO_ISA, or the fastest available. Throws SetupError when OCTAVO_ISA names one this machine
// does not have.
Isa active_isa();

// Tests and the bench compare sets within one process. Not while kernels run.
void use_isa(Isa isa);

// Rounding to nearest, no flushing of denormals, and the tile configuration where the active set
// has tiles. Every piece of work calls it on the thread that runs it: MLX's stream thread and other
// libraries may have left anything behind.
void prepare_thread();

}  // namespace octavo::cpu
