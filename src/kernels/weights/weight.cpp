#include "kernels/weights/weight.h"

#include <cstring>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/weight_buffer.h"

namespace octavo {
namespace {

void expect_bytes(std::span<const std::byte> data, int64_t bytes) {
  OCTAVO_CHECK(static_cast<int64_t>(data.size()) == bytes);
}

}  // namespace

std::string Weight::describe() const { return layout.describe(); }

Weight make_weight(const WeightView& source, RowOrder row_order) {
  WeightView chosen = source;
  if (!row_order.empty()) chosen.rows = static_cast<int64_t>(row_order.size());
  const PackedLayout layout = packed_layout(chosen);
  mx::array packed = make_weight_buffer(
      {static_cast<int>(layout.strips()), static_cast<int>(layout.strip_bytes())}, mx::uint8);
  pack_weight(source, layout, row_order, packed.data<std::byte>());
  return {static_cast<int>(chosen.rows), static_cast<int>(source.cols), layout, std::move(packed)};
}

size_t packed_bytes(const WeightView& source) {
  return static_cast<size_t>(packed_layout(source).bytes());
}

Weight make_dense_weight(int rows, int cols, DType dtype, std::span<const std::byte> data,
                         RowOrder row_order) {
  const WeightView source{.format = WeightFormat::kDense,
                          .rows = rows,
                          .cols = cols,
                          .dtype = dtype,
                          .data = data.data()};
  expect_bytes(data, rows * source.row_bytes());
  return make_weight(source, row_order);
}

Weight make_affine_weight(int rows, int cols, const AffineParts& parts, RowOrder row_order) {
  const WeightView source{.format = WeightFormat::kAffine,
                          .rows = rows,
                          .cols = cols,
                          .dtype = parts.scale_dtype,
                          .bits = parts.bits,
                          .group_size = parts.group_size,
                          .data = parts.packed.data(),
                          .scales = parts.scales.data(),
                          .biases = parts.biases.data()};
  const int64_t groups = int64_t{rows} * (cols / parts.group_size);
  expect_bytes(parts.packed, rows * source.row_bytes());
  expect_bytes(parts.scales, groups * static_cast<int64_t>(size_of(parts.scale_dtype)));
  expect_bytes(parts.biases, groups * static_cast<int64_t>(size_of(parts.scale_dtype)));
  return make_weight(source, row_order);
}

Weight make_mxfp4_weight(int rows, int cols, std::span<const std::byte> packed,
                         std::span<const std::byte> scales, RowOrder row_order) {
  constexpr int kGroup = 32;
  const WeightView source{.format = WeightFormat::kMxfp4,
                          .rows = rows,
                          .cols = cols,
                          .bits = 4,
                          .group_size = kGroup,
                          .data = packed.data(),
                          .scales = scales.data()};
  expect_bytes(packed, rows * source.row_bytes());
  expect_bytes(scales, int64_t{rows} * (cols / kGroup));
  return make_weight(source, row_order);
}

Weight make_gguf_weight(int rows, int cols, WeightFormat format, std::span<const std::byte> blocks,
                        RowOrder row_order) {
  const BlockSize block = gguf_block(format);
  OCTAVO_CHECK(block.elements > 0 && cols % block.elements == 0);
  const WeightView source{.format = format, .rows = rows, .cols = cols, .data = blocks.data()};
  expect_bytes(blocks, rows * source.row_bytes());
  return make_weight(source, row_order);
}

Weight take_strips(const Weight& weight, std::span<const int> strips) {
  const auto count = static_cast<int>(strips.size());
  PackedLayout layout = weight.layout;
  layout.rows = int64_t{count} * kStripRows;
  const int64_t bytes = layout.strip_bytes();
  mx::array packed = make_weight_buffer({count, static_cast<int>(bytes)}, mx::uint8);
  auto* to = packed.data<std::byte>();
  for (int strip : strips) {
    OCTAVO_CHECK(strip >= 0 && strip < weight.layout.strips());
    std::memcpy(to, weight.view().strip(strip), static_cast<size_t>(bytes));
    to += bytes;
  }
  return {count * kStripRows, weight.cols, layout, std::move(packed)};
}

mx::array dequantize(const Weight& weight) {
  mx::array out = make_device_buffer({weight.rows, weight.cols}, mx::float32);
  const PackedView view = weight.view();
  auto* target = out.data<float>();
  compute_pool().parallel_for(weight.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) unpack_row(view, row, target + row * weight.cols);
  });
  return out;
}

}  // namespace octavo
