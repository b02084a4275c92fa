// The baseline of the architecture: registers of 16 bytes.
#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {

const Probe kScalar = {
    .read = read_loop<16>, .fp32 = {kFmaRoundFlops<16>, fma_loop<16>}, .bf16 = {}};

}  // namespace octavo::bench::probes
