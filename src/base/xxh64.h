// xxh64.h - XXH64 (the xxHash specification), the same on every machine.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace octavo {

namespace xxh64_detail {

inline constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
inline constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
inline constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
inline constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
inline constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

// All supported machines are little-endian.
template <typename Word>
uint64_t word_at(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

inline uint64_t round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

inline uint64_t finish(uint64_t hash, std::span<const std::byte> rest) {
  const std::byte* at = rest.data();
  size_t left = rest.size();
  for (; left >= 8; at += 8, left -= 8)
    hash = std::rotl(hash ^ round(0, word_at<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    hash = std::rotl(hash ^ (word_at<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left)
    hash = std::rotl(hash ^ (static_cast<uint64_t>(*at) * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace xxh64_detail

inline uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed = 0) {
  using namespace xxh64_detail;
  constexpr size_t kStripe = 32;
  const size_t striped = bytes.size() / kStripe * kStripe;
  uint64_t hash = seed + kPrime5;
  if (striped > 0) {
    std::array<uint64_t, 4> lanes = {seed + kPrime1 + kPrime2, seed + kPrime2, seed,
                                     seed - kPrime1};
    for (size_t i = 0; i < striped; i += kStripe)
      for (size_t lane = 0; lane < 4; ++lane)
        lanes[lane] = round(lanes[lane], word_at<uint64_t>(bytes.data() + i + 8 * lane));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  return finish(hash + bytes.size(), bytes.subspan(striped));
}

}  // namespace octavo
