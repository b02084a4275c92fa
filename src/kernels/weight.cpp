#include "kernels/weight.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/decode_row.h"
#include "kernels/device_buffer.h"

namespace octavo {
namespace {

constexpr int64_t kCopyBytes = 4 << 20;

// Copies a file's bytes into device memory with all threads: a cold file is read by several at
// once.
mx::array copy_in(std::span<const std::byte> source, mx::Shape shape, mx::Dtype dtype) {
  mx::array out = make_device_buffer(std::move(shape), dtype);
  OCTAVO_CHECK(out.nbytes() == source.size());
  auto* target = out.data<std::byte>();
  compute_pool().parallel_for(
      static_cast<int64_t>(source.size()), kCopyBytes, [&](int64_t begin, int64_t end) {
        std::memcpy(target + begin, source.data() + begin, static_cast<size_t>(end - begin));
      });
  return out;
}

}  // namespace

size_t Weight::bytes() const {
  size_t total = 0;
  for (const auto& part : parts) total += part.nbytes();
  return total;
}

std::string Weight::describe() const {
  if (format == WeightFormat::kDense) return std::string(name_of(dtype_of(parts[0])));
  if (format == WeightFormat::kAffine) return fmt::format("affine {}-bit/{}", bits, group_size);
  return std::string(name_of(format));
}

Weight make_dense_weight(int rows, int cols, DType dtype, std::span<const std::byte> data) {
  return {WeightFormat::kDense, rows, cols, 0, 0, {copy_in(data, {rows, cols}, mlx_dtype(dtype))}};
}

Weight make_affine_weight(int rows, int cols, const AffineParts& parts) {
  const mx::Shape groups = {rows, cols / parts.group_size};
  const mx::Dtype scale = mlx_dtype(parts.scale_dtype);
  return {WeightFormat::kAffine,
          rows,
          cols,
          parts.bits,
          parts.group_size,
          {copy_in(parts.packed, {rows, cols * parts.bits / 32}, mx::uint32),
           copy_in(parts.scales, groups, scale), copy_in(parts.biases, groups, scale)}};
}

Weight make_mxfp4_weight(int rows, int cols, std::span<const std::byte> packed,
                         std::span<const std::byte> scales) {
  constexpr int kGroup = 32;
  return {WeightFormat::kMxfp4,
          rows,
          cols,
          4,
          kGroup,
          {copy_in(packed, {rows, cols / 8}, mx::uint32),
           copy_in(scales, {rows, cols / kGroup}, mx::uint8)}};
}

Weight make_gguf_weight(int rows, int cols, WeightFormat format,
                        std::span<const std::byte> blocks) {
  const BlockSize block = gguf_block(format);
  OCTAVO_CHECK(block.elements > 0 && cols % block.elements == 0);
  const int row_bytes = cols / block.elements * block.bytes;
  return {format, rows, cols, 0, 0, {copy_in(blocks, {rows, row_bytes}, mx::uint8)}};
}

Weight permute_rows(const Weight& source, std::span<const int> order) {
  OCTAVO_CHECK(static_cast<int>(order.size()) == source.rows);
  Weight result = source;
  for (auto& part : result.parts) {
    const mx::array& from = part;
    mx::array to = make_device_buffer(from.shape(), from.dtype());
    const size_t row_bytes = from.nbytes() / static_cast<size_t>(source.rows);
    for (size_t row = 0; row < order.size(); ++row) {
      std::memcpy(to.data<std::byte>() + row * row_bytes,
                  from.data<std::byte>() + static_cast<size_t>(order[row]) * row_bytes, row_bytes);
    }
    part = to;
  }
  return result;
}

WeightView view_of(WeightFormat format, int rows, int cols, int bits, int group_size,
                   std::span<const mx::array> parts) {
  WeightView view{
      .format = format, .rows = rows, .cols = cols, .bits = bits, .group_size = group_size};
  view.data = parts[0].data<std::byte>();
  if (format == WeightFormat::kDense) view.dtype = dtype_of(parts[0]);
  if (format == WeightFormat::kAffine) {
    view.dtype = dtype_of(parts[1]);
    view.biases = parts[2].data<std::byte>();
  }
  if (parts.size() > 1) view.scales = parts[1].data<std::byte>();
  return view;
}

mx::array dequantize(const Weight& weight) {
  mx::array out = make_device_buffer({weight.rows, weight.cols}, mx::float32);
  const WeightView view = view_of(weight.format, weight.rows, weight.cols, weight.bits,
                                  weight.group_size, weight.parts);
  auto* target = out.data<float>();
  compute_pool().parallel_for(weight.rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu::decode_row(view, row, target + row * weight.cols);
    }
  });
  return out;
}

}  // namespace octavo
