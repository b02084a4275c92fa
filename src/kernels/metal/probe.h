// probe.h (metal) - operations that measure the GPU: reading memory, and multiplying and adding.
// Metal only; the CPU's probes are in bench/probes.
#pragma once

#include "kernels/metal/probe_params.h"
#include "kernels/runtime/mlx.h"

namespace octavo::metal {

// Words that one threadgroup of read_probe() reads.
inline constexpr int kProbeGroupWords = kProbeThreads * kProbeReads * 4;

// words: [n] uint32, n a multiple of kProbeGroupWords. Reads them once. Returns sums whose total is
// the sum of all words modulo 2^32.
mx::array read_probe(const mx::array& words);

// groups threadgroups with chains of fma in `dtype`, float32 or float16. Returns one float32 per
// thread.
mx::array fma_probe(DType dtype, int groups, const FmaProbeParams& params);

// Operations of fma_probe(), counting a multiply-add as two.
double fma_probe_flops(int groups, const FmaProbeParams& params);

}  // namespace octavo::metal
