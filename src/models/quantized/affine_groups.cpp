#include "models/quantized/affine_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/half.h"

namespace octavo {
namespace {

template <typename T>
T element_at(const TensorView& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Writes `value` as element `index`. Returns false if its type cannot hold it.
bool store_exactly(float value, DType dtype, std::vector<std::byte>& out, int64_t index) {
  const auto at = static_cast<size_t>(index);
  if (dtype == DType::kFloat32) {
    std::memcpy(out.data() + at * 4, &value, 4);
    return true;
  }
  const bool half = dtype == DType::kFloat16;
  const uint16_t bits = half ? float_to_half(value) : float_to_bf16(value);
  std::memcpy(out.data() + at * 2, &bits, 2);
  return (half ? half_to_float(bits) : bf16_to_float(bits)) == value;
}

}  // namespace

int kernel_group(const TensorView& codes, int64_t cols, int64_t group) {
  for (const int size : {128, 64, 32}) {
    if (cols % size == 0 && (group % size == 0 || group >= cols)) return size;
  }
  throw SetupError(
      fmt::format("tensor \"{}\": groups of {} inputs of {} are not supported; the inputs and the "
                  "group size must be multiples of 32",
                  codes.name, group, cols));
}

int64_t file_group(const TensorView& scales, int64_t cols, int64_t groups, int stated) {
  if (groups == 1) return cols;
  if (stated > 0 && (cols + stated - 1) / stated == groups) return stated;
  if (groups > 0 && cols % groups == 0) return cols / groups;
  throw SetupError(
      fmt::format("tensor \"{}\" has shape [{}], which fits no size of groups of {} "
                  "inputs",
                  scales.name, fmt::join(scales.shape, ", "), cols));
}

std::vector<int64_t> group_map(const TensorView* index, int64_t cols, int64_t groups,
                               int64_t file_inputs, int kernel_inputs) {
  std::vector<int64_t> map(static_cast<size_t>(cols / kernel_inputs));
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t group = index != nullptr ? element_at<int32_t>(*index, k) : k / file_inputs;
    if (group < 0 || group >= groups)
      throw SetupError(
          fmt::format("tensor \"{}\" names group {} of {}", index->name, group, groups));
    auto& known = map[static_cast<size_t>(k / kernel_inputs)];
    if (k % kernel_inputs == 0) known = group;
    if (known != group)
      throw SetupError(
          fmt::format("tensor \"{}\": the groups are in order of activation (act-order, desc_act), "
                      "which is not "
                      "supported: use a version of the model without it",
                      index->name));
  }
  return map;
}

void fill_affine(const AffineSource& source, QuantizedMatrix& matrix) {
  WeightView& view = matrix.view;
  const auto groups = static_cast<int64_t>(source.groups.size());
  const size_t bytes = static_cast<size_t>(view.rows * groups) * size_of(view.dtype);
  matrix.scales.resize(bytes);
  matrix.biases.resize(bytes);
  compute_pool().parallel_for(view.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * groups; i < end * groups; ++i) {
      const int64_t row = i / groups, g = i % groups;
      const int64_t from = source.groups[static_cast<size_t>(g)];
      const float scale = float_at(*source.scales, source.scale_index(row, from));
      const float bias = -(scale * static_cast<float>(source.zero(row, from)));
      if (!store_exactly(scale, view.dtype, matrix.scales, i) ||
          !store_exactly(bias, view.dtype, matrix.biases, i)) {
        throw SetupError(fmt::format(
            "tensor \"{}\": the scale {} of output {} times its zero point "
            "{} is not a number of type {}",
            source.scales->name, scale, row, source.zero(row, from), name_of(view.dtype)));
      }
    }
  });
  view.scales = matrix.scales.data();
  view.biases = matrix.biases.data();
}

float float_at(const TensorView& tensor, int64_t index) {
  switch (tensor.type) {
    case TensorType::F16:
      return half_to_float(element_at<uint16_t>(tensor, index));
    case TensorType::BF16:
      return bf16_to_float(element_at<uint16_t>(tensor, index));
    default:
      OCTAVO_CHECK(tensor.type == TensorType::F32);
      return element_at<float>(tensor, index);
  }
}

uint32_t word_at(const TensorView& tensor, int64_t index) {
  return element_at<uint32_t>(tensor, index);
}

}  // namespace octavo
