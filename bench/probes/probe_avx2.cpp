// AVX2 and FMA: registers of 32 bytes.
#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {

const Probe kAvx2 = {.read = read_loop<32>, .fp32 = {kFmaRoundFlops<32>, fma_loop<32>}, .bf16 = {}};

}  // namespace octavo::bench::probes
