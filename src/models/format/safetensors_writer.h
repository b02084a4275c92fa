// safetensors_writer.h - writes a .safetensors file whose tensors are known before their data. No MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "models/format/tensor_type.h"

namespace octavo {

struct SafetensorsTensor {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;

  uint64_t bytes() const { return static_cast<uint64_t>(*tensor_bytes(type, shape)); }
};

// Throws SetupError with the file's name if it cannot be written.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path file, std::span<const SafetensorsTensor> tensors);

  // Writes a part of tensor `index`, in any order.
  void write(size_t index, uint64_t offset, std::span<const std::byte> bytes);
  // All tensors must be complete.
  void finish();

 private:
  void expect_good() const;

  std::filesystem::path path_;
  std::ofstream file_;
  std::vector<uint64_t> starts_;  // of each tensor, and the end of the last one
  uint64_t written_ = 0;
};

}  // namespace octavo
