// weight.h - the one weight type kernels take, whatever file it came from.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/mlx.h"
#include "kernels/weight_format.h"

namespace octavo {

// A matrix [rows, cols] = [outputs, inputs] (or a table of `rows` embeddings). What `parts` hold
// belongs to the kernels: read it through view() or dequantize().
struct Weight {
  WeightFormat format;
  int rows;
  int cols;
  int bits;        // affine only, else 0
  int group_size;  // affine and mxfp4, else 0
  std::vector<mx::array> parts;

  size_t bytes() const;
  std::string describe() const;  // "bfloat16", "affine 4-bit/64", "q4_k"
};

// The makers copy the numbers into memory of ours, so that the file they came from can be released.
// All spans must have exactly the size the shape asks for; the loader has checked the file before.
Weight make_dense_weight(int rows, int cols, DType dtype, std::span<const std::byte> data);

struct AffineParts {
  int bits;
  int group_size;
  DType scale_dtype;
  std::span<const std::byte> packed;  // [rows, cols * bits / 8] little-endian bit stream per row
  std::span<const std::byte> scales;  // [rows, cols / group_size]
  std::span<const std::byte> biases;
};
Weight make_affine_weight(int rows, int cols, const AffineParts& parts);
Weight make_mxfp4_weight(int rows, int cols, std::span<const std::byte> packed,
                         std::span<const std::byte> scales);
Weight make_gguf_weight(int rows, int cols, WeightFormat format, std::span<const std::byte> blocks);

// Rows of `source` in the order given: result row i is source row order[i]. Rows are whole units in
// every format, so quantised numbers stay as they are.
Weight permute_rows(const Weight& source, std::span<const int> order);

// Pointers into the parts, which must outlive the view and be evaluated.
WeightView view_of(WeightFormat format, int rows, int cols, int bits, int group_size,
                   std::span<const mx::array> parts);

// The matrix as float32 [rows, cols]: the reference's way to any format.
mx::array dequantize(const Weight& weight);

}  // namespace octavo
