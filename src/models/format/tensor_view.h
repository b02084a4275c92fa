// tensor_view.h - a view of one tensor in a mapped model file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/format/tensor_type.h"

namespace octavo {

inline constexpr size_t kMaxTensorDims = 8;

// Row-major, outermost dimension first (GGUF files list them the other way round). `bytes` points
// into the mapped file and has exactly the size required by type and shape; it may be unaligned.
struct TensorView {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

}  // namespace octavo
