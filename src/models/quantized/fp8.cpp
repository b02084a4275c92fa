// FP8 (E4M3), of quant_method fp8 and of compressed-tensors:
//   weight [out, in], and one scale per block of outputs and inputs (weight_scale_inv, weight_scale),
//   per output ([out] or [out, 1]) or for the matrix ([] or [1]); value = weight * scale
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/half.h"
#include "models/quantized/affine_groups.h"
#include "models/quantized/quantized_formats.h"

namespace octavo {
namespace {

std::array<float, 256> make_e4m3_table() {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    if (exponent == 15 && fraction == 7) value = std::numeric_limits<float>::quiet_NaN();
    values[static_cast<size_t>(code)] = (code & 128) != 0 ? -value : value;
  }
  return values;
}

// Outputs and inputs that share a scale, and scales per row of blocks.
struct ScaleBlocks {
  int64_t rows;
  int64_t cols;
  int64_t per_row;
};

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

ScaleBlocks scale_blocks(const QuantizationScheme& scheme, const TensorView& scales,
                         const MatrixShape& shape) {
  expect_float(scales);
  const std::vector<int64_t>& has = scales.shape;
  const int64_t rows = shape.rows, cols = shape.cols;
  if (has.empty() || has == std::vector<int64_t>{1}) return {rows, cols, 1};
  if (has == std::vector<int64_t>{rows} || has == std::vector<int64_t>{rows, 1})
    return {1, cols, 1};
  const int64_t block_rows = scheme.block_rows, block_cols = scheme.block_cols;
  if (block_rows > 0 &&
      has == std::vector<int64_t>{blocks_of(rows, block_rows), blocks_of(cols, block_cols)})
    return {block_rows, block_cols, has[1]};
  throw SetupError(fmt::format(
      "tensor \"{}\" has shape [{}], which is neither one scale per output of a {} x {} matrix nor "
      "one per block of the config",
      scales.name, fmt::join(has, ", "), rows, cols));
}

void expect_powers_of_two(const TensorView& scales) {
  const auto count = static_cast<int64_t>(scales.bytes.size() / size_of(expect_float(scales)));
  for (int64_t i = 0; i < count; ++i) {
    int exponent = 0;
    const float scale = float_at(scales, i);
    if (std::frexp(scale, &exponent) != 0.5f || exponent < -100 || exponent > 100)
      throw SetupError(
          fmt::format("tensor \"{}\" has the scale {}, but the config says ue8m0, which "
                      "means powers of two; set \"scale_fmt\" to \"float\"",
                      scales.name, scale));
  }
}

void decode_fp8(const QuantizedTensors& tensors, const ScaleBlocks& blocks,
                QuantizedMatrix& matrix) {
  static const std::array<float, 256> table = make_e4m3_table();
  const WeightView& view = matrix.view;
  const auto* codes = reinterpret_cast<const uint8_t*>(tensors.codes->bytes.data());
  matrix.data.resize(static_cast<size_t>(view.rows * view.row_bytes()));
  compute_pool().parallel_for(view.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::byte* out = matrix.data.data() + row * view.row_bytes();
      float scale = 0;
      for (int64_t k = 0; k < view.cols; ++k) {
        if (k % blocks.cols == 0)
          scale = float_at(*tensors.scales, row / blocks.rows * blocks.per_row + k / blocks.cols);
        const float value = table[codes[row * view.cols + k]] * scale;
        const uint16_t narrow = float_to_bf16(value);
        if (view.dtype == DType::kFloat32) {
          std::memcpy(out + k * 4, &value, 4);
        } else {
          std::memcpy(out + k * 2, &narrow, 2);
        }
      }
    }
  });
  matrix.view.data = matrix.data.data();
}

}  // namespace

QuantizedMatrix open_fp8(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                         const MatrixShape& shape, QuantizedUse use) {
  expect_shape(*tensors.codes, {shape.rows, shape.cols});
  if (tensors.codes->type != TensorType::F8_E4M3)
    throw SetupError(fmt::format("tensor \"{}\" has type {}, expected F8_E4M3", tensors.codes->name,
                                 tensor_type_name(tensors.codes->type)));
  if (tensors.zeros != nullptr)
    throw SetupError(fmt::format("tensor \"{}\": zero points of FP8 weights are not supported",
                                 tensors.zeros->name));
  const ScaleBlocks blocks = scale_blocks(scheme, *tensors.scales, shape);
  if (use != QuantizedUse::kLayout && scheme.powers_of_two) expect_powers_of_two(*tensors.scales);
  QuantizedMatrix matrix{
      .view = {.format = WeightFormat::kDense,
               .rows = shape.rows,
               .cols = shape.cols,
               .dtype = scheme.powers_of_two ? DType::kBFloat16 : DType::kFloat32}};
  if (use == QuantizedUse::kConvert) decode_fp8(tensors, blocks, matrix);
  return matrix;
}

}  // namespace octavo
