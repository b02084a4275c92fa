// quantised_formats.h - for tests: the quantised weight formats that can be loaded. No MLX.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/types/weight_format.h"

namespace octavo {

// The block formats of GGUF.
inline std::vector<WeightFormat> gguf_formats() {
  using enum WeightFormat;
  return {kQ4_0, kQ4_1,      kQ5_0,   kQ5_1,   kQ8_0,  kQ4_K,    kQ5_K,  kQ6_K,   kQ2_K,
          kQ3_K, kMxfp4Gguf, kIQ4_NL, kIQ4_XS, kIQ3_S, kIQ3_XXS, kIQ2_S, kIQ2_XS, kIQ2_XXS};
}

// Where a block has its float16 scales.
inline std::vector<size_t> half_fields(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return {0, 2};
    case WeightFormat::kQ6_K:
      return {208};
    case WeightFormat::kQ2_K:
      return {80, 82};
    case WeightFormat::kQ3_K:
      return {108};
    case WeightFormat::kMxfp4Gguf:
      return {};
    default:
      return {0};
  }
}

// Makes the scales of blocks of random bytes finite and moderate.
inline void moderate_scales(WeightFormat format, std::span<std::byte> blocks) {
  const auto bytes = static_cast<size_t>(gguf_block(format).bytes);
  const std::vector<size_t> halves = half_fields(format);
  for (size_t at = 0; bytes > 0 && at < blocks.size(); at += bytes) {
    for (const size_t field : halves)
      blocks[at + field + 1] = (blocks[at + field + 1] & std::byte{0x83}) | std::byte{0x20};
    if (format == WeightFormat::kMxfp4Gguf)
      blocks[at] = static_cast<std::byte>(116 + std::to_integer<int>(blocks[at]) % 8);
  }
}

// Every format with every size of groups, and affine formats with scales of every type. `cols` is the
// smallest number of inputs; any multiple of it is valid, too. `rows` is 0.
inline std::vector<WeightView> quantised_formats() {
  std::vector<WeightView> formats;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const int group : {32, 64, 128})
        formats.push_back({.format = WeightFormat::kAffine,
                           .cols = group,
                           .dtype = dtype,
                           .bits = bits,
                           .group_size = group});
    }
  }
  formats.push_back({.format = WeightFormat::kMxfp4, .cols = 32, .bits = 4, .group_size = 32});
  for (const WeightFormat format : gguf_formats())
    formats.push_back({.format = format, .cols = gguf_block(format).elements});
  return formats;
}

}  // namespace octavo
