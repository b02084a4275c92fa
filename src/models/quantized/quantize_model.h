// quantize_model.h - writes an MLX-quantised copy of a dense model, as mlx_lm.convert does. Shows no
// MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "models/format/checkpoint.h"

namespace octavo {

struct QuantizeOptions {
  int bits = 4;
  int group_size = 64;
  uint64_t shard_bytes = uint64_t{5} << 30;  // of a weight file, unless one tensor is larger
};

struct QuantizedFiles {
  uint64_t bytes = 0;  // of all weight files
  int matrices = 0;    // quantised
  int dense = 0;  // tensors that are not: vectors, and matrices whose rows are not whole groups
};

// Writes weights, config and tokenizer to the new folder `out`, which appears when it is complete. The
// weights have the bits of mlx_lm.convert. Holds one block of a tensor at a time, besides the mapped file.
// Throws SetupError if the model is not dense safetensors of a supported form, or `out` exists.
QuantizedFiles quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& out,
                              const QuantizeOptions& options,
                              const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace octavo
