#include "models/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/device_buffer.h"
#include "models/gguf_config.h"

namespace octavo {
namespace {

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
    default:
      return std::nullopt;
  }
}

void expect_shape(const TensorView& tensor, const std::vector<int64_t>& shape) {
  if (tensor.shape != shape) {
    throw SetupError(fmt::format("tensor \"{}\" has shape [{}], but the config asks for [{}]",
                                 tensor.name, fmt::join(tensor.shape, ", "),
                                 fmt::join(shape, ", ")));
  }
}

[[noreturn]] void wrong_type(const TensorView& tensor, const char* expected) {
  throw SetupError(fmt::format("tensor \"{}\" has type {}, expected {}", tensor.name,
                               tensor_type_name(tensor.type), expected));
}

DType expect_float(const TensorView& tensor) {
  const auto dtype = float_type(tensor.type);
  if (!dtype) wrong_type(tensor, "F32, F16 or BF16");
  return *dtype;
}

// Entry r: which row of llama.cpp's file is row r of the original. There, row (head, pair, half)
// stands where the original has (head, half, pair).
std::vector<int> rope_row_order(int rows, int head_dim) {
  std::vector<int> order(static_cast<size_t>(rows));
  const int half = head_dim / 2;
  for (int row = 0; row < rows; ++row) {
    const int within = row % head_dim;
    order[static_cast<size_t>(row)] = row - within + within % half * 2 + within / half;
  }
  return order;
}

// Whole groups of `cols` inputs in an MLX-quantised matrix, from the shapes themselves: what a
// config says of a layer's bits is always also in its shapes.
struct QuantShape {
  int bits;
  int group_size;
};

QuantShape quant_shape(const TensorView& packed, const TensorView& scales, int rows, int cols) {
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  for (int bits : kBits) {
    for (int group : kGroups) {
      if (cols % group == 0 &&
          packed.shape == std::vector<int64_t>{rows, int64_t{cols} * bits / 32} &&
          scales.shape == std::vector<int64_t>{rows, cols / group}) {
        return {bits, group};
      }
    }
  }
  throw SetupError(fmt::format(
      "tensor \"{}\" of shape [{}] with scales [{}] is no {} x {} matrix of 2, 3, 4, 5, 6 or 8 "
      "bits in groups of 32, 64 "
      "or 128",
      packed.name, fmt::join(packed.shape, ", "), fmt::join(scales.shape, ", "), rows, cols));
}

}  // namespace

WeightSource::WeightSource(const Checkpoint& checkpoint, LoadProgress progress)
    : checkpoint_(checkpoint),
      progress_(std::move(progress)),
      is_gguf_(checkpoint.gguf() != nullptr),
      permuted_(gguf_permutes_rope(checkpoint)) {
  for (const auto& view : checkpoint.tensors()) total_bytes_ += view.bytes.size();
}

const TensorView& WeightSource::tensor(const std::string& name) const {
  return checkpoint_.at(is_gguf_ ? gguf_tensor_name(name) : name);
}

bool WeightSource::has(const std::string& name) const {
  return checkpoint_.find(is_gguf_ ? gguf_tensor_name(name) : name) != nullptr;
}

void WeightSource::done_with(const TensorView& view) {
  checkpoint_.release(view);
  read_bytes_ += view.bytes.size();
  if (progress_) progress_(read_bytes_, total_bytes_);
}

uint64_t WeightSource::loaded_bytes() const {
  uint64_t total = 0;
  for (const auto& [format, bytes] : bytes_by_format_) total += bytes;
  return total;
}

Weight WeightSource::load_mlx_quantized(const std::string& module, int rows, int cols,
                                        RowOrder row_order) {
  const TensorView& packed = tensor(module + ".weight");
  const TensorView& scales = tensor(module + ".scales");
  if (packed.type != TensorType::U32) wrong_type(packed, "U32 beside scales");
  const QuantShape quant = quant_shape(packed, scales, rows, cols);
  if (scales.type == TensorType::U8) {
    if (quant.bits != 4 || quant.group_size != 32) {
      throw SetupError(
          fmt::format("tensor \"{}\": byte scales are known for mxfp4 only (4 bits, groups of 32), "
                      "not {} bits in "
                      "groups of {}",
                      packed.name, quant.bits, quant.group_size));
    }
    Weight weight = make_mxfp4_weight(rows, cols, packed.bytes, scales.bytes, row_order);
    done_with(packed);
    done_with(scales);
    return weight;
  }
  const TensorView& biases = tensor(module + ".biases");
  expect_shape(biases, scales.shape);
  if (biases.type != scales.type) wrong_type(biases, "the type of its scales");
  Weight weight = make_affine_weight(rows, cols,
                                     {.bits = quant.bits,
                                      .group_size = quant.group_size,
                                      .scale_dtype = expect_float(scales),
                                      .packed = packed.bytes,
                                      .scales = scales.bytes,
                                      .biases = biases.bytes},
                                     row_order);
  for (const auto* view : {&packed, &scales, &biases}) done_with(*view);
  return weight;
}

Weight WeightSource::load_matrix(const std::string& module, int rows, int cols,
                                 RowOrder row_order) {
  if (!is_gguf_ && has(module + ".scales"))
    return load_mlx_quantized(module, rows, cols, row_order);
  const TensorView& view = tensor(module + ".weight");
  expect_shape(view, {rows, cols});
  const auto blocks = gguf_format(view.type);
  Weight weight = blocks ? make_gguf_weight(rows, cols, *blocks, view.bytes, row_order)
                         : make_dense_weight(rows, cols, expect_float(view), view.bytes, row_order);
  done_with(view);
  return weight;
}

Weight WeightSource::matrix(const std::string& module, int rows, int cols, RowOrder row_order) {
  Weight weight = load_matrix(module, rows, cols, row_order);
  bytes_by_format_[weight.describe()] += weight.bytes();
  return weight;
}

Weight WeightSource::rope_matrix(const std::string& module, int rows, int cols, int head_dim) {
  return permuted_ ? matrix(module, rows, cols, rope_row_order(rows, head_dim))
                   : matrix(module, rows, cols);
}

mx::array WeightSource::vector(const std::string& name, int size) {
  const TensorView& view = tensor(name);
  expect_shape(view, {size});
  const DType dtype = expect_float(view);
  mx::array out = make_device_buffer({size}, mlx_dtype(dtype));
  std::memcpy(out.data<std::byte>(), view.bytes.data(), view.bytes.size());
  bytes_by_format_[std::string(name_of(dtype))] += view.bytes.size();
  done_with(view);
  return out;
}

mx::array WeightSource::norm(const std::string& name, int size, float offset) {
  mx::array stored = vector(name, size);
  if (offset == 0) return stored;
  mx::array sum = mx::add(mx::astype(stored, mx::float32), mx::array(offset));
  mx::array out = make_device_buffer({size}, mx::float32);
  sum.eval();
  std::copy_n(sum.data<float>(), size, out.data<float>());
  return out;
}

mx::array WeightSource::float_vector(const std::string& name, int size) {
  mx::array wide = mx::astype(vector(name, size), mx::float32);
  wide.eval();
  return wide;
}

mx::array WeightSource::conv_taps(const std::string& name, int channels, int taps) {
  const TensorView& view = tensor(name);
  if (view.shape != std::vector<int64_t>{channels, taps, 1})
    expect_shape(view, {channels, 1, taps});
  const DType dtype = expect_float(view);
  mx::array stored = make_device_buffer({channels, taps}, mlx_dtype(dtype));
  std::memcpy(stored.data<std::byte>(), view.bytes.data(), view.bytes.size());
  mx::array turned = mx::contiguous(mx::transpose(stored));
  turned.eval();
  bytes_by_format_[std::string(name_of(dtype))] += view.bytes.size();
  done_with(view);
  return turned;
}

mx::array WeightSource::rope_vector(const std::string& name, int size, int head_dim) {
  mx::array original = vector(name, size);
  if (!permuted_) return original;
  const size_t width = original.itemsize();
  mx::array out = make_device_buffer({size}, original.dtype());
  const auto order = rope_row_order(size, head_dim);
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(out.data<std::byte>() + i * width,
                original.data<std::byte>() + static_cast<size_t>(order[i]) * width, width);
  }
  return out;
}

}  // namespace octavo
