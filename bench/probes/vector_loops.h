// vector_loops.h - the reading and multiplying loops over vector registers. Everything here is
// local to the file that includes it: each is compiled for another instruction set. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::bench {
namespace {

// kBytes: of a register. A struct, because the compiler takes no vector size from a template's
// parameter inside a function.
template <int kBytes>
struct Registers;

template <>
struct Registers<16> {
  typedef uint64_t Words __attribute__((vector_size(16)));
  typedef float Floats __attribute__((vector_size(16)));
};
template <>
struct Registers<32> {
  typedef uint64_t Words __attribute__((vector_size(32)));
  typedef float Floats __attribute__((vector_size(32)));
};
template <>
struct Registers<64> {
  typedef uint64_t Words __attribute__((vector_size(64)));
  typedef float Floats __attribute__((vector_size(64)));
};

// Four runs at once, a quarter of the data each: prefetchers follow several runs and stop at the
// end of a page, so that one run alone does not keep memory busy.
template <int kBytes>
uint64_t read_loop(const std::byte* data, size_t bytes) {
  using Words = typename Registers<kBytes>::Words;
  const size_t quarter = bytes / 4 / kBytes;
  const auto* a = static_cast<const Words*>(__builtin_assume_aligned(data, 64));
  const auto *b = a + quarter, *c = b + quarter, *d = c + quarter;
  Words from_a{}, from_b{}, from_c{}, from_d{};
  for (size_t i = 0; i < quarter; ++i) {
    from_a ^= a[i];
    from_b ^= b[i];
    from_c ^= c[i];
    from_d ^= d[i];
  }
  const Words all = from_a ^ from_b ^ from_c ^ from_d;
  return all[0] ^ all[1];
}

// Enough independent sums to hide the latency of one, and few enough for 16 registers.
constexpr int kSums = 12;
constexpr int kUnroll = 8;  // steps in a round

template <int kBytes>
constexpr double kFmaRoundFlops = 2.0 * kUnroll * kSums * (kBytes / 4);

// These files are compiled with -ffp-contract=fast: a product and a sum become one instruction
// where the set has it.
template <int kBytes>
float fma_loop(int64_t rounds) {
  using Floats = typename Registers<kBytes>::Floats;
  Floats sums[kSums] = {};
  Floats factor = Floats{} + 0.999f, term = Floats{} + 0.001f;
  asm volatile("" : "+m"(factor), "+m"(term));  // not constants to the optimiser
  for (int64_t round = 0; round < rounds; ++round) {
    for (int step = 0; step < kUnroll; ++step) {
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
    }
  }
  Floats all{};
  for (int i = 0; i < kSums; ++i) all += sums[i];
  return all[0];
}

}  // namespace
}  // namespace octavo::bench
