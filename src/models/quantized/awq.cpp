// AWQ in the packing "gemm":
//   qweight  [in, out / 8] words, qzeros [groups, out / 8] words, scales [groups, out]
//   field i of a word is output kAwqOrder[i] of its eight; value = scale * (code - zero)
#include <fmt/format.h>

#include "base/compute_pool.h"
#include "base/error.h"
#include "models/quantized/affine_groups.h"
#include "models/quantized/quantized_formats.h"

namespace octavo {
namespace {

constexpr int kAwqOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

// The bit at which output `row` starts in its word.
int awq_shift(int64_t row) {
  const auto within = static_cast<int>(row % 8);
  return 4 * (within % 2 * 4 + within / 2);
}

// Codes as rows of outputs, two inputs per byte.
void transpose_awq(const TensorView& qweight, QuantizedMatrix& matrix) {
  const int64_t cols = matrix.view.cols, words = matrix.view.rows / 8;
  const int64_t row_bytes = matrix.view.row_bytes();
  matrix.data.resize(static_cast<size_t>(matrix.view.rows * row_bytes));
  auto* out = reinterpret_cast<uint8_t*>(matrix.data.data());
  compute_pool().parallel_for(words, 16, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < cols; k += 2) {
      for (int64_t w = begin; w < end; ++w) {
        const uint32_t even = word_at(qweight, k * words + w);
        const uint32_t odd = word_at(qweight, (k + 1) * words + w);
        for (int i = 0; i < 8; ++i) {
          const uint32_t both = (even >> 4 * i & 15) | (odd >> 4 * i & 15) << 4;
          out[(8 * w + kAwqOrder[i]) * row_bytes + k / 2] = static_cast<uint8_t>(both);
        }
      }
    }
  });
  matrix.view.data = matrix.data.data();
}

}  // namespace

QuantizedMatrix open_awq(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                         const MatrixShape& shape, QuantizedUse use) {
  const int64_t rows = shape.rows, cols = shape.cols;
  if (rows % 8 != 0)
    throw SetupError(fmt::format("tensor \"{}\": {} outputs are not whole words of eight",
                                 tensors.codes->name, rows));
  expect_words(*tensors.codes, {cols, rows / 8});
  const int64_t groups = tensors.scales->shape.empty() ? 0 : tensors.scales->shape[0];
  expect_shape(*tensors.scales, {groups, rows});
  expect_float(*tensors.scales);
  expect_words(*tensors.zeros, {groups, rows / 8});
  const int64_t size = file_group(*tensors.scales, cols, groups, scheme.group_size);
  QuantizedMatrix matrix{.view = {.format = WeightFormat::kAffine,
                                  .rows = rows,
                                  .cols = cols,
                                  .dtype = DType::kFloat32,
                                  .bits = 4,
                                  .group_size = kernel_group(*tensors.codes, cols, size)}};
  if (use != QuantizedUse::kConvert) return matrix;
  fill_affine({.scales = tensors.scales,
               .groups = group_map(nullptr, cols, groups, size, matrix.view.group_size),
               .scale_index = [=](int64_t row, int64_t group) { return group * rows + row; },
               .zero =
                   [=](int64_t row, int64_t group) {
                     const uint32_t word = word_at(*tensors.zeros, group * (rows / 8) + row / 8);
                     return static_cast<int>(word >> awq_shift(row) & 15);
                   }},
              matrix);
  transpose_awq(*tensors.codes, matrix);
  return matrix;
}

}  // namespace octavo
