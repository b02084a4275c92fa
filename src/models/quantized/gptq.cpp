// GPTQ:
//   qweight  [in * bits / 32, out] words: a column is one output's inputs, as a bit stream
//   qzeros   [groups, out * bits / 32] words: a row is one group's outputs, as a bit stream
//   scales   [groups, out], g_idx [in]: the group of each input; value = scale * (code - zero)
// Zero points are stored less one in the format "gptq", and as they are in "gptq_v2".
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "models/quantized/affine_groups.h"
#include "models/quantized/quantized_formats.h"

namespace octavo {
namespace {

int gptq_bits(const TensorView& qweight, int64_t cols) {
  for (const int bits : {2, 3, 4, 8}) {
    if (!qweight.shape.empty() && cols % 32 == 0 && qweight.shape[0] == cols / 32 * bits)
      return bits;
  }
  throw SetupError(
      fmt::format("tensor \"{}\": its first axis fits no packing of {} inputs in 2, 3, 4 "
                  "or 8 bits",
                  qweight.name, cols));
}

int64_t words_of(int64_t values, int bits) { return (values * bits + 31) / 32; }

// The zero point of an output as stored.
int stored_zero(const TensorView& qzeros, int bits, int64_t rows, int64_t row, int64_t group) {
  const int64_t words = words_of(rows, bits);
  const int64_t bit = row * bits;
  const int64_t at = group * words + bit / 32;
  uint64_t two_words = word_at(qzeros, at);
  if (bit / 32 + 1 < words) two_words |= uint64_t{word_at(qzeros, at + 1)} << 32;
  return static_cast<int>(two_words >> bit % 32 & ((1u << bits) - 1));
}

// One zero point for all codes allows biases of the scales' own type.
void expect_middle_zeros(const QuantizationScheme& scheme, const TensorView& qzeros,
                         const WeightView& view, int64_t groups) {
  const int middle = 1 << (view.bits - 1);
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < view.rows; ++row) {
      const int zero = stored_zero(qzeros, view.bits, view.rows, row, group) + scheme.zero_offset;
      if (zero != middle)
        throw SetupError(
            fmt::format("tensor \"{}\" has the zero point {}, but the config says sym, which "
                        "means {} everywhere; set \"sym\" in quantization_config to false",
                        qzeros.name, zero, middle));
    }
  }
}

// Words of a column become a row.
void transpose_gptq(const TensorView& qweight, QuantizedMatrix& matrix) {
  const int64_t rows = matrix.view.rows;
  const int64_t words = matrix.view.row_bytes() / 4;
  matrix.data.resize(static_cast<size_t>(rows * words) * 4);
  compute_pool().parallel_for(rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t w = 0; w < words; ++w) {
      for (int64_t row = begin; row < end; ++row)
        std::memcpy(matrix.data.data() + (row * words + w) * 4,
                    qweight.bytes.data() + (w * rows + row) * 4, 4);
    }
  });
  matrix.view.data = matrix.data.data();
}

// Null if the file has none, or an empty one.
const TensorView* gptq_group_index(const QuantizedTensors& tensors, int64_t cols) {
  if (tensors.group_index == nullptr || tensors.group_index->bytes.empty()) return nullptr;
  expect_words(*tensors.group_index, {cols});
  return tensors.group_index;
}

}  // namespace

QuantizedMatrix open_gptq(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                          const MatrixShape& shape, QuantizedUse use) {
  const int64_t rows = shape.rows, cols = shape.cols;
  const int bits = gptq_bits(*tensors.codes, cols);
  expect_words(*tensors.codes, {cols / 32 * bits, rows});
  const int64_t groups = tensors.scales->shape.empty() ? 0 : tensors.scales->shape[0];
  expect_shape(*tensors.scales, {groups, rows});
  expect_words(*tensors.zeros, {groups, words_of(rows, bits)});
  const int64_t size = file_group(*tensors.scales, cols, groups, scheme.group_size);
  const DType scale_type = expect_float(*tensors.scales);
  QuantizedMatrix matrix{.view = {.format = WeightFormat::kAffine,
                                  .rows = rows,
                                  .cols = cols,
                                  .dtype = scheme.symmetric ? scale_type : DType::kFloat32,
                                  .bits = bits,
                                  .group_size = kernel_group(*tensors.codes, cols, size)}};
  if (use == QuantizedUse::kLayout) return matrix;
  std::vector<int64_t> map =
      group_map(gptq_group_index(tensors, cols), cols, groups, size, matrix.view.group_size);
  if (scheme.symmetric) expect_middle_zeros(scheme, *tensors.zeros, matrix.view, groups);
  if (use == QuantizedUse::kCheck) return matrix;
  fill_affine({.scales = tensors.scales,
               .groups = std::move(map),
               .scale_index = [=](int64_t row, int64_t group) { return group * rows + row; },
               .zero =
                   [=, &scheme](int64_t row, int64_t group) {
                     return stored_zero(*tensors.zeros, bits, rows, row, group) +
                            scheme.zero_offset;
                   }},
              matrix);
  transpose_gptq(*tensors.codes, matrix);
  return matrix;
}

}  // namespace octavo
