// dtype.h - data types of computation and the KV cache, for the layers without MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

enum class DType : uint8_t { kFloat32, kFloat16, kBFloat16 };

constexpr size_t size_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "?";
}

// Parses vLLM's spellings: float32/float, float16/half, bfloat16. Throws SetupError
// with the name of `flag`.
DType parse_dtype(std::string_view text, std::string_view flag);

}  // namespace octavo
