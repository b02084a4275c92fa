// AVX-512 with bfloat16 dot products: 32 products and sums per instruction.
#include <immintrin.h>

#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {
namespace {

constexpr double kDotRoundFlops = 2.0 * kUnroll * kSums * 32;

float dot_loop(int64_t rounds) {
  __m512 sums[kSums];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  __m512i ones = _mm512_set1_epi16(0x3f80);
  asm volatile("" : "+v"(ones));  // hide the constant from the optimizer
  const auto x = reinterpret_cast<__m512bh>(ones);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int step = 0; step < kUnroll; ++step) {
      for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, x, x);
    }
  }
  __m512 all = _mm512_setzero_ps();
  for (const auto& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

}  // namespace

const Probe kAvx512Bf16 = {.read = read_loop<64>,
                           .fp32 = {kFmaRoundFlops<64>, fma_loop<64>},
                           .bf16 = {kDotRoundFlops, dot_loop}};

}  // namespace octavo::bench::probes
