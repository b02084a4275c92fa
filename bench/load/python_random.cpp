#include "bench/load/python_random.h"

#include <bit>

#include "base/error.h"

namespace octavo::bench {

// Matsumoto and Nishimura's init_by_array, which CPython calls with the words of the seed.
PythonRandom::PythonRandom(uint64_t seed) {
  const auto mixed = [this](size_t i) { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  state_[0] = 19650218;
  for (uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253u * mixed(i) + i;
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  const size_t key_words = key[1] == 0 ? 1 : 2;
  size_t i = 1;
  const auto advance = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (size_t round = 0; round < kWords; ++round) {
    const size_t word = round % key_words;
    state_[i] = (state_[i] ^ (mixed(i) * 1664525u)) + key[word] + static_cast<uint32_t>(word);
    advance();
  }
  for (size_t round = 1; round < kWords; ++round) {
    state_[i] = (state_[i] ^ (mixed(i) * 1566083941u)) - static_cast<uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

void PythonRandom::twist() {
  constexpr size_t kDistance = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t joined = (state_[i] & 0x80000000u) | (state_[(i + 1) % kWords] & 0x7fffffffu);
    state_[i] =
        state_[(i + kDistance) % kWords] ^ (joined >> 1) ^ ((joined & 1) != 0 ? 0x9908b0dfu : 0);
  }
  at_ = 0;
}

uint32_t PythonRandom::next() {
  if (at_ == kWords) twist();
  uint32_t word = state_[at_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

uint32_t PythonRandom::below(uint32_t end) {
  OCTAVO_CHECK(end > 0);
  // As many bits as `end` has, drawn again until they are below it.
  const int unused = std::countl_zero(end);
  for (;;) {
    const uint32_t drawn = next() >> unused;
    if (drawn < end) return drawn;
  }
}

}  // namespace octavo::bench
