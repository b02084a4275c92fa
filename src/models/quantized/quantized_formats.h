// quantized_formats.h - one reader per format of quantized_matrix.h; each is open_quantized of its
// format. No MLX.
#pragma once

#include "models/quantized/quantized_matrix.h"

namespace octavo {

QuantizedMatrix open_awq(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                         const MatrixShape& shape, QuantizedUse use);
QuantizedMatrix open_gptq(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                          const MatrixShape& shape, QuantizedUse use);
// compressed-tensors: codes packed in words, and integers of one byte.
QuantizedMatrix open_packed_integers(const QuantizationScheme& scheme,
                                     const QuantizedTensors& tensors, const MatrixShape& shape,
                                     QuantizedUse use);
QuantizedMatrix open_byte_integers(const QuantizationScheme& scheme,
                                   const QuantizedTensors& tensors, const MatrixShape& shape,
                                   QuantizedUse use);
QuantizedMatrix open_fp8(const QuantizationScheme& scheme, const QuantizedTensors& tensors,
                         const MatrixShape& shape, QuantizedUse use);

// Throws SetupError if the tensor is not of 32-bit words of this shape.
void expect_words(const TensorView& tensor, const std::vector<int64_t>& shape);

}  // namespace octavo
