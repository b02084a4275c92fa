// quantized_matrix.h - matrices of AWQ, GPTQ, compressed-tensors and FP8 checkpoints in the forms that
// the kernels have. No MLX.
//
// Integers become MLX's form, value = scale * code + bias with bias = -scale * zero. The codes are the
// file's own. A bias is exact: if every zero point is half of the codes' range it has the type of the
// scales, otherwise float32. A scale for more than 128 inputs is repeated.
//
// FP8 becomes bfloat16 if the config says that all scales are powers of two, which is exact. Otherwise
// it becomes float32: a product of 4 bits and a scale of up to 24 does not fit into bfloat16, and is
// rounded once to float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/format/checkpoint.h"
#include "models/quantized/quantization_scheme.h"
#include "models/quantized/quantized_tensors.h"
#include "models/weight_view.h"

namespace octavo {

// Finds the module's tensor with this suffix (".qweight"); null if there is none.
using FindTensor = std::function<const TensorView*(const char* suffix)>;

// The tensors of a module; nullopt if it is not quantised in this way. Throws SetupError if one is
// missing.
std::optional<QuantizedTensors> find_quantized(const QuantizationScheme& scheme,
                                               const FindTensor& find);

struct QuantizedMatrix {
  WeightView view = {};  // points into the vectors, or to the file's codes
  std::vector<std::byte> data = {};
  std::vector<std::byte> scales = {};
  std::vector<std::byte> biases = {};
};

enum class QuantizedUse : uint8_t {
  kLayout,  // shapes and types, from the header: the view has no data
  kCheck,  // also the groups and zero points, as far as they decide whether the matrix is supported
  kConvert,
};

// Throws SetupError that names the tensor if its type, shape or contents do not fit.
QuantizedMatrix open_quantized(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                               const MatrixShape& shape, QuantizedUse use);

// Bytes of the tensor in memory, packed for the kernels: those of the whole matrix for its codes, none
// for its scales. nullopt if it is not a part of a quantised matrix.
std::optional<uint64_t> quantized_bytes(const QuantizationScheme& scheme,
                                        const Checkpoint& checkpoint, const TensorView& tensor);

}  // namespace octavo
