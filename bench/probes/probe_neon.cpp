// arm64: registers of 16 bytes, and a fused multiply-add.
#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {

const Probe kNeon = {.read = read_loop<16>, .fp32 = {kFmaRoundFlops<16>, fma_loop<16>}, .bf16 = {}};

}  // namespace octavo::bench::probes
