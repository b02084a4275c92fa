// quantization_scheme.h - how a checkpoint that is neither MLX nor GGUF is quantised, from its
// config. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "models/config.h"

namespace octavo {

enum class QuantMethod : uint8_t {
  kNone,  // dense, MLX's own or gpt-oss's mxfp4: the tensors say everything
  kAwq,
  kGptq,
  kCompressedTensors,
  kFp8,
};

// The tensors' shapes decide bits and groups where they can, so per-module overrides need no code.
struct QuantizationScheme {
  QuantMethod method = QuantMethod::kNone;
  int bits = 0;            // awq and gptq
  int group_size = 0;      // awq and gptq; 0: one group per output
  bool symmetric = false;  // every zero point is half of the codes' range
  int zero_offset = 0;     // gptq: added to the stored zero points
  int block_rows = 0;      // fp8: outputs and inputs that share a scale; 0: no blocks
  int block_cols = 0;
  bool powers_of_two = false;    // fp8: all scales are
  std::string description = {};  // "awq 4-bit in groups of 128"
};

// Throws SetupError that names a method or an option that is not supported.
QuantizationScheme read_quantization(const Config& config);

}  // namespace octavo
