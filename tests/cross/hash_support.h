// hash_support.h - inputs that are the same on every platform, and hashes of outputs. No MLX.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/half.h"

namespace octavo {

// A simple generator, because the standard library's distributions differ between platforms.
class Random {
 public:
  uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  float number() { return static_cast<float>(bits() % 4001) / 1000.0f - 2.0f; }

 private:
  uint64_t state_ = 42;
};

inline std::vector<std::byte> numbers(Random& random, size_t count, DType dtype) {
  std::vector<std::byte> out(count * size_of(dtype));
  for (size_t i = 0; i < count; ++i) {
    const float value = random.number();
    const uint16_t half = dtype == DType::kFloat16 ? float_to_half(value) : float_to_bf16(value);
    if (dtype == DType::kFloat32) {
      std::memcpy(out.data() + 4 * i, &value, 4);
    } else {
      std::memcpy(out.data() + 2 * i, &half, 2);
    }
  }
  return out;
}

inline void print_hash(const std::string& name, const std::vector<std::byte>& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211u;
  fmt::print("{:016x} {}\n", hash, name);
}

}  // namespace octavo
