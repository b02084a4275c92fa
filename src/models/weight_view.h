// weight_view.h - views a checkpoint's tensors as matrices. No MLX.
#pragma once

#include <optional>
#include <vector>

#include "kernels/types/weight_format.h"
#include "models/format/tensor_view.h"
#include "models/quantized/quantized_tensors.h"

namespace octavo {

// The tensors of one matrix, or of a stack of matrices.
struct MatrixTensors {
  const TensorView* numbers = nullptr;
  const TensorView* scales = nullptr;  // MLX quantisation
  const TensorView* biases = nullptr;  // affine only
  // Another quantisation than MLX's; `numbers` are its codes, and scales and biases are null.
  std::optional<QuantizedTensors> quantized = std::nullopt;

  // Those that are not null.
  std::vector<const TensorView*> all() const;
};

struct MatrixShape {
  int rows;
  int cols;
  int count = 0;  // > 0: a stack of `count` matrices, with one more leading axis
};

// The matrix, or the first of the stack. Throws SetupError if types or shapes do not match.
WeightView weight_view(const MatrixTensors& tensors, const MatrixShape& shape);

// The format of GGUF blocks; nullopt: plain numbers, or a type without a kernel.
std::optional<WeightFormat> gguf_format(TensorType type);

// Matrix `index` of the stack that starts with `first`.
WeightView stacked(const WeightView& first, int64_t index);

// A tensor of plain floats, of exactly this shape.
void expect_shape(const TensorView& tensor, const std::vector<int64_t>& shape);
DType expect_float(const TensorView& tensor);

}  // namespace octavo
