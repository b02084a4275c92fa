// weight.h - the weight type of all kernels, for every file format.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/runtime/mlx.h"
#include "kernels/weights/packed_weight.h"

namespace octavo {

// A matrix [rows, cols] = [outputs, inputs] (or a table of `rows` embeddings), packed for the
// kernels (packed_weight.h). Only kernels know the layout of `packed`: read it through
// dequantize().
struct Weight {
  int rows;
  int cols;
  PackedLayout layout;
  mx::array packed;  // uint8, from make_weight_buffer

  PackedView view() const { return {layout, packed.data<std::byte>()}; }
  size_t bytes() const { return packed.nbytes(); }
  std::string describe() const;
};

// The makers pack the numbers into new memory with all threads, so that the source file can be
// released. All spans must have exactly the size that the shape requires; the loader has checked
// the file. With a row order, row r of the result is row row_order[r] of the data, and the result
// has as many rows as the order.
using RowOrder = std::span<const int>;
Weight make_weight(const WeightView& source, RowOrder row_order = {});
Weight make_dense_weight(int rows, int cols, DType dtype, std::span<const std::byte> data,
                         RowOrder row_order = {});

struct AffineParts {
  int bits;
  int group_size;
  DType scale_dtype;
  std::span<const std::byte> packed;  // [rows, cols * bits / 8] little-endian bit stream per row
  std::span<const std::byte> scales;  // [rows, cols / group_size]
  std::span<const std::byte> biases;
};
Weight make_affine_weight(int rows, int cols, const AffineParts& parts, RowOrder row_order = {});
Weight make_mxfp4_weight(int rows, int cols, std::span<const std::byte> packed,
                         std::span<const std::byte> scales, RowOrder row_order = {});
Weight make_gguf_weight(int rows, int cols, WeightFormat format, std::span<const std::byte> blocks,
                        RowOrder row_order = {});

// Strips (kStripRows rows each) of a packed matrix. The padding of a last strip that is not whole
// counts as rows.
Weight take_strips(const Weight& weight, std::span<const int> strips);

// Bytes of a packed weight of this shape.
size_t packed_bytes(const WeightView& source);

// The matrix as float32 [rows, cols], for the reference implementations.
mx::array dequantize(const Weight& weight);

}  // namespace octavo
