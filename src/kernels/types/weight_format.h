// weight_format.h - how a weight matrix's numbers are stored. No MLX: CPU kernels read this view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace octavo {

enum class WeightFormat : uint8_t {
  kDense,   // float32, float16 or bfloat16
  kAffine,  // MLX: 2/3/4/5/6/8-bit integers, w = scale * q + bias per group of 32/64/128 inputs
  kMxfp4,   // MLX and gpt-oss: E2M1 values, one power-of-two scale per 32 inputs
  kQ4_0,    // GGUF blocks, as in the file
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kMxfp4Gguf,
  kIQ4_NL,
  kIQ4_XS,
  kIQ3_S,
  kIQ3_XXS,
  kIQ2_S,
  kIQ2_XS,
  kIQ2_XXS,
};

std::string_view name_of(WeightFormat format);

// Inputs per block of a GGUF format and the bytes of one block; {0, 0} for the others.
struct BlockSize {
  int elements;
  int bytes;
};
BlockSize gguf_block(WeightFormat format);

// A matrix [rows, cols] = [outputs, inputs], borrowed. Row r starts at data + r * row_bytes.
struct WeightView {
  WeightFormat format = WeightFormat::kDense;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kFloat32;  // dense: of the numbers; affine: of scales and biases
  int bits = 0;                   // affine
  int group_size = 0;             // affine and mxfp4
  const std::byte* data = nullptr;
  const std::byte* scales =
      nullptr;  // [rows, cols / group_size]: dtype (affine) or E8M0 bytes (mxfp4)
  const std::byte* biases = nullptr;  // [rows, cols / group_size]: affine
  int64_t row_bytes() const;
};

}  // namespace octavo
