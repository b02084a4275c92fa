// probe.metal - what this GPU can do at most: read memory, and multiply and add.
//
// Layout: probe_params.h; threadgroups of kProbeThreads, one per kProbeThreads * kProbeReads * 16
// bytes or as many as the host chooses. No threadgroup memory.
// Limit: bandwidth (probe_read), arithmetic (probe_fma).
#include "kernels/metal/shaders/numbers.msl"
#include "kernels/metal/probe_params.h"

using namespace octavo::metal;

// sums: one per thread, of all words that it read, modulo 2^32. A threadgroup reads adjacent memory.
[[kernel]] void probe_read(
    const device uint* words [[buffer(0)]],
    device uint* sums [[buffer(1)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const device uint* from = words + (ulong(group) * kProbeReads * kProbeThreads + thread_index) * 4;
  vec<uint, 4> sum = vec<uint, 4>(0, 0, 0, 0);
  for (int i = 0; i < kProbeReads; ++i)
    sum += *(const device vec<uint, 4>*)(from + ulong(i) * kProbeThreads * 4);
  sums[group * kProbeThreads + thread_index] = sum.x + sum.y + sum.z + sum.w;
}

// out: one per thread, the sum of its chains. Chain c starts at c + thread_index % 4; a round
// multiplies it by the factor and adds the addend.
template <typename T>
[[kernel]] void probe_fma(
    device float* out [[buffer(0)]],
    constant FmaProbeParams& params [[buffer(1)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const T factor = T(params.factor);
  const T addend = T(params.addend);
  T chains[kProbeChains];
  UNROLL
  for (int c = 0; c < kProbeChains; ++c) chains[c] = T(c + int(thread_index % 4));
  for (int round = 0; round < params.rounds; ++round) {
    UNROLL
    for (int c = 0; c < kProbeChains; ++c) chains[c] = fma(chains[c], factor, addend);
  }
  float sum = 0;
  UNROLL
  for (int c = 0; c < kProbeChains; ++c) sum += float(chains[c]);
  out[group * kProbeThreads + thread_index] = sum;
}
