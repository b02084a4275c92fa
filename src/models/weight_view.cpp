#include "models/weight_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "base/error.h"

namespace octavo {
namespace {

constexpr int kMxfp4Group = 32;

std::optional<DType> float_type(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return DType::kFloat32;
    case TensorType::F16:
      return DType::kFloat16;
    case TensorType::BF16:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void wrong_type(const TensorView& tensor, const char* expected) {
  throw SetupError(fmt::format("tensor \"{}\" has type {}, expected {}", tensor.name,
                               tensor_type_name(tensor.type), expected));
}

// The shape of a tensor with `columns` elements per row.
std::vector<int64_t> dims_of(const MatrixShape& shape, int64_t columns) {
  if (shape.count > 0) return {shape.count, shape.rows, columns};
  return {shape.rows, columns};
}

// Bits and group size of an MLX-quantised matrix, derived from its shapes alone; the config is not
// needed.
struct QuantShape {
  int bits;
  int group_size;
};

QuantShape quant_shape(const TensorView& packed, const TensorView& scales,
                       const MatrixShape& shape) {
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  for (int bits : kBits) {
    for (int group : kGroups) {
      if (shape.cols % group == 0 &&
          packed.shape == dims_of(shape, int64_t{shape.cols} * bits / 32) &&
          scales.shape == dims_of(shape, shape.cols / group)) {
        return {bits, group};
      }
    }
  }
  throw SetupError(
      fmt::format("tensor \"{}\" of shape [{}] with scales [{}] is not a {} x {} matrix of 2, 3, "
                  "4, 5, 6 or 8 bits in "
                  "groups of 32, 64 or 128",
                  packed.name, fmt::join(packed.shape, ", "), fmt::join(scales.shape, ", "),
                  shape.rows, shape.cols));
}

WeightView mxfp4_view(const MatrixTensors& tensors, const MatrixShape& shape) {
  return {.format = WeightFormat::kMxfp4,
          .rows = shape.rows,
          .cols = shape.cols,
          .bits = 4,
          .group_size = kMxfp4Group,
          .data = tensors.numbers->bytes.data(),
          .scales = tensors.scales->bytes.data()};
}

// gpt-oss's layout of mxfp4: 16 bytes per group, with a separate axis for groups.
WeightView mxfp4_blocks(const MatrixTensors& tensors, const MatrixShape& shape) {
  const int64_t groups = shape.cols / kMxfp4Group;
  std::vector<int64_t> blocks = dims_of(shape, groups);
  if (tensors.scales->type != TensorType::U8)
    wrong_type(*tensors.scales, "U8 for the scales of U8 blocks");
  expect_shape(*tensors.scales, blocks);
  blocks.push_back(kMxfp4Group / 2);
  expect_shape(*tensors.numbers, blocks);
  return mxfp4_view(tensors, shape);
}

WeightView mlx_quantized(const MatrixTensors& tensors, const MatrixShape& shape) {
  const TensorView& packed = *tensors.numbers;
  const TensorView& scales = *tensors.scales;
  if (packed.type == TensorType::U8) return mxfp4_blocks(tensors, shape);
  if (packed.type != TensorType::U32) wrong_type(packed, "U32 for a matrix with scales");
  const QuantShape quant = quant_shape(packed, scales, shape);
  if (scales.type == TensorType::U8) {
    if (quant.bits != 4 || quant.group_size != kMxfp4Group) {
      throw SetupError(fmt::format(
          "tensor \"{}\": byte scales are supported for mxfp4 only (4 bits, groups of 32), "
          "not {} bits in groups of {}",
          packed.name, quant.bits, quant.group_size));
    }
    return mxfp4_view(tensors, shape);
  }
  if (tensors.biases == nullptr)
    throw SetupError(fmt::format("tensor \"{}\" has scales without biases", packed.name));
  expect_shape(*tensors.biases, scales.shape);
  if (tensors.biases->type != scales.type) wrong_type(*tensors.biases, "the type of its scales");
  return {.format = WeightFormat::kAffine,
          .rows = shape.rows,
          .cols = shape.cols,
          .dtype = expect_float(scales),
          .bits = quant.bits,
          .group_size = quant.group_size,
          .data = packed.bytes.data(),
          .scales = scales.bytes.data(),
          .biases = tensors.biases->bytes.data()};
}

}  // namespace

std::optional<WeightFormat> gguf_format(TensorType type) {
  switch (type) {
    case TensorType::Q4_0:
      return WeightFormat::kQ4_0;
    case TensorType::Q4_1:
      return WeightFormat::kQ4_1;
    case TensorType::Q5_0:
      return WeightFormat::kQ5_0;
    case TensorType::Q5_1:
      return WeightFormat::kQ5_1;
    case TensorType::Q8_0:
      return WeightFormat::kQ8_0;
    case TensorType::Q4_K:
      return WeightFormat::kQ4_K;
    case TensorType::Q5_K:
      return WeightFormat::kQ5_K;
    case TensorType::Q6_K:
      return WeightFormat::kQ6_K;
    case TensorType::Q2_K:
      return WeightFormat::kQ2_K;
    case TensorType::Q3_K:
      return WeightFormat::kQ3_K;
    case TensorType::MXFP4:
      return WeightFormat::kMxfp4Gguf;
    case TensorType::IQ4_NL:
      return WeightFormat::kIQ4_NL;
    case TensorType::IQ4_XS:
      return WeightFormat::kIQ4_XS;
    case TensorType::IQ3_S:
      return WeightFormat::kIQ3_S;
    case TensorType::IQ3_XXS:
      return WeightFormat::kIQ3_XXS;
    case TensorType::IQ2_S:
      return WeightFormat::kIQ2_S;
    case TensorType::IQ2_XS:
      return WeightFormat::kIQ2_XS;
    case TensorType::IQ2_XXS:
      return WeightFormat::kIQ2_XXS;
    default:
      return std::nullopt;
  }
}

std::vector<const TensorView*> MatrixTensors::all() const {
  if (quantized) return quantized->all();
  std::vector<const TensorView*> views;
  for (const auto* view : {numbers, scales, biases})
    if (view != nullptr) views.push_back(view);
  return views;
}

WeightView weight_view(const MatrixTensors& tensors, const MatrixShape& shape) {
  if (tensors.scales != nullptr) return mlx_quantized(tensors, shape);
  const TensorView& numbers = *tensors.numbers;
  // GGUF files store a matrix of one row as a vector.
  const bool one_row = shape.count == 0 && shape.rows == 1;
  if (!one_row || numbers.shape != std::vector<int64_t>{shape.cols})
    expect_shape(numbers, dims_of(shape, shape.cols));
  WeightView view{.rows = shape.rows, .cols = shape.cols, .data = numbers.bytes.data()};
  if (const auto blocks = gguf_format(numbers.type)) {
    view.format = *blocks;
  } else {
    view.dtype = expect_float(numbers);
  }
  return view;
}

WeightView stacked(const WeightView& first, int64_t index) {
  WeightView view = first;
  const int64_t row = index * first.rows;
  view.data += row * first.row_bytes();
  if (first.scales == nullptr) return view;
  const int64_t groups = first.cols / first.group_size;
  const auto scale_bytes =
      first.format == WeightFormat::kMxfp4 ? 1 : static_cast<int64_t>(size_of(first.dtype));
  view.scales += row * groups * scale_bytes;
  if (first.biases != nullptr) view.biases += row * groups * scale_bytes;
  return view;
}

void expect_shape(const TensorView& tensor, const std::vector<int64_t>& shape) {
  if (tensor.shape != shape) {
    throw SetupError(fmt::format("tensor \"{}\" has shape [{}], but the config requires [{}]",
                                 tensor.name, fmt::join(tensor.shape, ", "),
                                 fmt::join(shape, ", ")));
  }
}

DType expect_float(const TensorView& tensor) {
  const auto dtype = float_type(tensor.type);
  if (!dtype) wrong_type(tensor, "F32, F16 or BF16");
  return *dtype;
}

}  // namespace octavo
