// vector_loops.h - read and multiply loops over vector registers. Everything here is local to the
// including file, because each is compiled for a different instruction set. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::bench {
namespace {

// kBytes: register size. A struct, because the compiler does not accept a template parameter as
// vector size inside a function.
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

// Reads four streams at once, a quarter of the data each: prefetchers stop at page boundaries but
// follow several streams, so a single stream does not saturate memory.
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

// Enough independent sums to hide latency, and few enough for 16 registers.
constexpr int kSums = 12;
constexpr int kUnroll = 8;  // steps per round

template <int kBytes>
constexpr double kFmaRoundFlops = 2.0 * kUnroll * kSums * (kBytes / 4);

// Compiled with -ffp-contract=fast: a product and a sum become one instruction where available.
template <int kBytes>
float fma_loop(int64_t rounds) {
  using Floats = typename Registers<kBytes>::Floats;
  Floats sums[kSums] = {};
  Floats factor = Floats{} + 0.999f, term = Floats{} + 0.001f;
  asm volatile("" : "+m"(factor), "+m"(term));  // hide the constants from the optimizer
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
