// weights.h - random weights of every format, shared by the kernel tests.
#pragma once

#include <span>
#include <vector>

#include "kernels/testing/quantised_formats.h"
#include "kernels/testing/support.h"
#include "kernels/weights/weight.h"

namespace octavo {

inline std::span<const std::byte> bytes_of(const mx::array& array) {
  return {array.data<std::byte>(), array.nbytes()};
}

inline Weight random_dense(std::mt19937& random, int rows, int cols, DType dtype) {
  const mx::array values = random_array(random, {rows, cols}, mlx_dtype(dtype));
  return make_dense_weight(rows, cols, dtype, bytes_of(values));
}

inline Weight random_affine(std::mt19937& random, int rows, int cols, int bits, int group,
                            DType dtype) {
  const mx::array values = random_array(random, {rows, cols}, mlx_dtype(dtype));
  std::vector<mx::array> parts = mx::quantize(values, group, bits);
  mx::eval(parts);
  return make_affine_weight(rows, cols,
                            {.bits = bits,
                             .group_size = group,
                             .scale_dtype = dtype,
                             .packed = bytes_of(parts[0]),
                             .scales = bytes_of(parts[1]),
                             .biases = bytes_of(parts[2])});
}

// Random blocks with moderate scales.
inline Weight random_gguf(std::mt19937& random, int rows, int cols, WeightFormat format) {
  const BlockSize block = gguf_block(format);
  std::vector<std::byte> blocks(static_cast<size_t>(rows) *
                                static_cast<size_t>(cols / block.elements * block.bytes));
  for (auto& byte : blocks) byte = static_cast<std::byte>(random());
  moderate_scales(format, blocks);
  return make_gguf_weight(rows, cols, format, blocks);
}

inline Weight random_mxfp4(std::mt19937& random, int rows, int cols) {
  const mx::array values = random_array(random, {rows, cols});
  std::vector<mx::array> parts = mx::quantize(values, 32, 4, "mxfp4");
  mx::eval(parts);
  return make_mxfp4_weight(rows, cols, bytes_of(parts[0]), bytes_of(parts[1]));
}

inline std::vector<Weight> every_format(std::mt19937& random, int rows, int cols) {
  std::vector<Weight> weights;
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    weights.push_back(random_dense(random, rows, cols, dtype));
  }
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128})
      weights.push_back(random_affine(random, rows, cols, bits, group, DType::kFloat32));
  }
  weights.push_back(random_affine(random, rows, cols, 4, 64, DType::kBFloat16));
  weights.push_back(random_affine(random, rows, cols, 4, 64, DType::kFloat16));
  weights.push_back(random_mxfp4(random, rows, cols));
  for (const WeightFormat format : gguf_formats()) {
    weights.push_back(random_gguf(random, rows, cols, format));
  }
  return weights;
}

}  // namespace octavo
