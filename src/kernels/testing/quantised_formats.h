// quantised_formats.h - for tests: the quantised weight formats that can be loaded. No MLX.
#pragma once

#include <vector>

#include "kernels/types/weight_format.h"

namespace octavo {

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
  for (const auto format :
       {WeightFormat::kQ4_0, WeightFormat::kQ4_1, WeightFormat::kQ5_0, WeightFormat::kQ5_1,
        WeightFormat::kQ8_0, WeightFormat::kQ4_K, WeightFormat::kQ5_K, WeightFormat::kQ6_K})
    formats.push_back({.format = format, .cols = gguf_block(format).elements});
  return formats;
}

}  // namespace octavo
