// quantize_plan.h - which tensors of a model mlx-lm quantises, and how. Shows no MLX.
#pragma once

#include <string>
#include <vector>

#include "models/format/checkpoint.h"
#include "models/format/safetensors_writer.h"
#include "models/quantized/quantize_model.h"

namespace octavo {

// One tensor of the new model: a tensor of the old one, or a stack of its experts' matrices.
struct TensorConversion {
  std::string name;
  std::vector<const TensorView*> sources;  // of one shape
  TensorType type = TensorType::BF16;      // of the numbers, or of the scales and biases
  bool is_stack = false;                   // has one more leading axis than its sources
  int bits = 0;                            // 0: not quantised
  int group_size = 0;
  bool differs = false;  // from the options: noted in the config

  std::string module() const;  // its name without ".weight"
  int64_t cols() const;        // numbers per row
  // One tensor, or codes, scales and biases.
  std::vector<SafetensorsTensor> outputs() const;
};

// The tensors that the model reads, in the order of the file and with mlx-lm's names. Throws
// SetupError if the model cannot be converted.
std::vector<TensorConversion> plan_conversions(const Checkpoint& checkpoint,
                                               const QuantizeOptions& options);

}  // namespace octavo
