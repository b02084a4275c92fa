// affine_groups.h - scales and zero points of a file as scales and biases of MLX's groups. No MLX.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/quantized/quantized_matrix.h"

namespace octavo {

// Inputs per group of the kernels for a file's groups of `group` inputs: 128, 64 or 32. Throws
// SetupError with the name of `codes` if none fits.
int kernel_group(const TensorView& codes, int64_t cols, int64_t group);

// Inputs per group of a file with `groups` groups per row: `stated` if that gives as many. Throws
// SetupError if the shape fits no size.
int64_t file_group(const TensorView& scales, int64_t cols, int64_t groups, int stated);

// The file's group of each of the kernels' groups, which have `kernel_inputs` inputs. `index` names the
// group of every input; if it is null, each `file_inputs` inputs are a group. Throws SetupError if
// inputs of one of the kernels' groups are in different groups of the file (act-order).
std::vector<int64_t> group_map(const TensorView* index, int64_t cols, int64_t groups,
                               int64_t file_inputs, int kernel_inputs);

// Where a matrix's scales and zero points are in its file.
struct AffineSource {
  const TensorView* scales = nullptr;
  std::vector<int64_t> groups = {};                                // by the kernels' group
  std::function<int64_t(int64_t row, int64_t group)> scale_index;  // an element of `scales`
  std::function<int(int64_t row, int64_t group)> zero;
};

// Fills scales and biases of `matrix`, whose view has its final shape, type, bits and group size.
void fill_affine(const AffineSource& source, QuantizedMatrix& matrix);

// An element of a tensor of floats.
float float_at(const TensorView& tensor, int64_t index);

// Word `index` of a tensor of 32-bit words.
uint32_t word_at(const TensorView& tensor, int64_t index);

}  // namespace octavo
