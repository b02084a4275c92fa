// compressed-tensors:
//   weight_packed [out, in * bits / 32] words (4 or 8 bits), or weight [out, in] of int8
//   weight_scale  [out, groups], [out, 1] or [1]
//   weight_zero_point  [out * bits / 32, groups] words, or [out, groups] of int8; asymmetric only
// value = scale * (code - zero). Packed codes and zero points have half of their range added, so that
// they are not negative.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "models/quantized/affine_groups.h"
#include "models/quantized/quantized_formats.h"

namespace octavo {
namespace {

// Scales per row: 0 for one scale of the whole matrix.
int64_t scales_per_row(const TensorView& scales, int64_t rows) {
  expect_float(scales);
  const auto& shape = scales.shape;
  if (shape.empty() || (shape.size() == 1 && shape[0] == 1)) return 0;
  if (shape.size() == 1) {
    expect_shape(scales, {rows});
    return 1;
  }
  const int64_t groups = std::max<int64_t>(shape[1], 1);
  expect_shape(scales, {rows, groups});
  return groups;
}

int zero_of_byte(const TensorView& zeros, int64_t index, int bits) {
  return static_cast<int>(static_cast<int8_t>(zeros.bytes[static_cast<size_t>(index)])) +
         (1 << (bits - 1));
}

// The zero point of an output and a group, as a code that is not negative.
std::function<int(int64_t, int64_t)> zero_reader(const QuantizedTensors& tensors, int bits,
                                                 int64_t rows, int64_t groups) {
  const TensorView* zeros = tensors.zeros;
  if (zeros == nullptr) return [bits](int64_t, int64_t) { return 1 << (bits - 1); };
  if (zeros->type == TensorType::I8) {
    expect_shape(*zeros, tensors.scales->shape);
    return [=](int64_t row, int64_t group) {
      return zero_of_byte(*zeros, groups > 0 ? row * groups + group : 0, bits);
    };
  }
  if (groups == 0)
    throw SetupError(fmt::format("tensor \"{}\" has zero points of type {}, expected I8",
                                 zeros->name, tensor_type_name(zeros->type)));
  const int64_t per_word = 32 / bits;
  expect_words(*zeros, {(rows + per_word - 1) / per_word, groups});
  return [=](int64_t row, int64_t group) {
    const uint32_t word = word_at(*zeros, row / per_word * groups + group);
    return static_cast<int>(word >> row % per_word * bits & ((1u << bits) - 1));
  };
}

struct IntegerMatrix {
  QuantizedMatrix matrix;
  AffineSource source;
};

// Everything but the codes.
IntegerMatrix open_integers(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                            const MatrixShape& shape, int bits, QuantizedUse use) {
  const int64_t rows = shape.rows, cols = shape.cols;
  if (tensors.zeros == nullptr && !scheme.symmetric)
    throw SetupError(
        fmt::format("tensor \"{}\" has no zero points, but the config says that its "
                    "weights are asymmetric",
                    tensors.codes->name));
  const int64_t per_row = scales_per_row(*tensors.scales, rows);
  const int64_t groups = std::max<int64_t>(per_row, 1);
  const int64_t size = file_group(*tensors.scales, cols, groups, 0);
  const bool is_narrow = tensors.zeros == nullptr;
  IntegerMatrix made{
      .matrix = {.view = {.format = WeightFormat::kAffine,
                          .rows = rows,
                          .cols = cols,
                          .dtype = is_narrow ? expect_float(*tensors.scales) : DType::kFloat32,
                          .bits = bits,
                          .group_size = kernel_group(*tensors.codes, cols, size)}},
      .source = {
          .scales = tensors.scales,
          .groups = {},
          .scale_index = [=](int64_t row,
                             int64_t group) { return per_row > 0 ? row * groups + group : 0; },
          .zero = zero_reader(tensors, bits, rows, per_row)}};
  if (use == QuantizedUse::kLayout) return made;
  const TensorView* index = tensors.group_index;
  if (index != nullptr) expect_words(*index, {cols});
  made.source.groups = group_map(index, cols, groups, size, made.matrix.view.group_size);
  return made;
}

int packed_bits(const TensorView& packed, int64_t cols) {
  for (const int bits : {4, 8}) {
    if (packed.shape.size() == 2 && cols % 32 == 0 && packed.shape[1] == cols / 32 * bits)
      return bits;
  }
  throw SetupError(fmt::format("tensor \"{}\": its rows fit no packing of {} inputs in 4 or 8 bits",
                               packed.name, cols));
}

}  // namespace

QuantizedMatrix open_packed_integers(const QuantizationScheme& scheme,
                                     const QuantizedTensors& tensors, const MatrixShape& shape,
                                     QuantizedUse use) {
  const int bits = packed_bits(*tensors.codes, shape.cols);
  expect_words(*tensors.codes, {shape.rows, shape.cols / 32 * bits});
  IntegerMatrix made = open_integers(scheme, tensors, shape, bits, use);
  if (use != QuantizedUse::kConvert) return std::move(made.matrix);
  fill_affine(made.source, made.matrix);
  made.matrix.view.data = tensors.codes->bytes.data();  // MLX packs codes in the same way
  return std::move(made.matrix);
}

QuantizedMatrix open_byte_integers(const QuantizationScheme& scheme,
                                   const QuantizedTensors& tensors, const MatrixShape& shape,
                                   QuantizedUse use) {
  expect_shape(*tensors.codes, {shape.rows, shape.cols});
  IntegerMatrix made = open_integers(scheme, tensors, shape, 8, use);
  if (use != QuantizedUse::kConvert) return std::move(made.matrix);
  fill_affine(made.source, made.matrix);
  const auto& from = tensors.codes->bytes;
  std::vector<std::byte>& codes = made.matrix.data;
  codes.resize(from.size());
  compute_pool().parallel_for(
      static_cast<int64_t>(from.size()), 1 << 16, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
          codes[i] = from[i] ^ std::byte{128};  // adds 128
      });
  made.matrix.view.data = codes.data();
  return std::move(made.matrix);
}

}  // namespace octavo
