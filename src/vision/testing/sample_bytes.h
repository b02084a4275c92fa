// sample_bytes.h - the bytes of a sample image. No MLX.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "vision/testing/image_samples.h"

namespace octavo {

inline std::vector<std::byte> sample_bytes(const ImageSample& sample) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  bytes.reserve(sample.hex.size() / 2);
  for (size_t i = 0; i + 1 < sample.hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(sample.hex[i]) * 16 + digit(sample.hex[i + 1])));
  }
  return bytes;
}

inline std::vector<std::byte> sample_bytes(std::string_view name) {
  for (const ImageSample& sample : kImageSamples) {
    if (sample.name == name) return sample_bytes(sample);
  }
  throw std::logic_error("there is no sample " + std::string(name));
}

}  // namespace octavo
