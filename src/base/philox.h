// philox.h - Philox4x32-10, a counter-based random number generator: each draw is a pure function
// of (key, counter), independent of other draws.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

inline std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// Returns a uniform 53-bit number in [0, 1) for the token at `position` of choice `choice` of a
// request with this seed.
inline double token_uniform(uint64_t seed, uint32_t choice, uint32_t position) {
  const auto bits = philox(seed, {position, choice, 0, 0});
  const uint64_t wide = (uint64_t{bits[0]} << 32) | bits[1];
  return static_cast<double>(wide >> 11) * 0x1.0p-53;
}

}  // namespace octavo
