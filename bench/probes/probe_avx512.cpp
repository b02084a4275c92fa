// AVX-512: registers of 64 bytes.
#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {

const Probe kAvx512 = {
    .read = read_loop<64>, .fp32 = {kFmaRoundFlops<64>, fma_loop<64>}, .bf16 = {}};

}  // namespace octavo::bench::probes
