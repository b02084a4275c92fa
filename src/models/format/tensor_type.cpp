#include "models/format/tensor_type.h"

#include <array>
#include <limits>

#include "base/error.h"

namespace octavo {
namespace {

using T = TensorType;

// In the order of the enum.
constexpr std::array kTypes = {
    TensorTypeInfo{T::F64, "F64", 1, 8, true, 28, true},
    TensorTypeInfo{T::F32, "F32", 1, 4, true, 0, true},
    TensorTypeInfo{T::F16, "F16", 1, 2, true, 1, true},
    TensorTypeInfo{T::BF16, "BF16", 1, 2, true, 30, true},
    TensorTypeInfo{T::F8_E4M3, "F8_E4M3", 1, 1, true, -1, true},
    TensorTypeInfo{T::F8_E5M2, "F8_E5M2", 1, 1, true, -1, true},
    TensorTypeInfo{T::I64, "I64", 1, 8, true, 27, true},
    TensorTypeInfo{T::I32, "I32", 1, 4, true, 26, true},
    TensorTypeInfo{T::I16, "I16", 1, 2, true, 25, true},
    TensorTypeInfo{T::I8, "I8", 1, 1, true, 24, true},
    TensorTypeInfo{T::U64, "U64", 1, 8, true, -1, true},
    TensorTypeInfo{T::U32, "U32", 1, 4, true, -1, true},
    TensorTypeInfo{T::U16, "U16", 1, 2, true, -1, true},
    TensorTypeInfo{T::U8, "U8", 1, 1, true, -1, true},
    TensorTypeInfo{T::Bool, "BOOL", 1, 1, true, -1, true},
    TensorTypeInfo{T::Q4_0, "Q4_0", 32, 18, true, 2, false},
    TensorTypeInfo{T::Q4_1, "Q4_1", 32, 20, true, 3, false},
    TensorTypeInfo{T::Q5_0, "Q5_0", 32, 22, true, 6, false},
    TensorTypeInfo{T::Q5_1, "Q5_1", 32, 24, true, 7, false},
    TensorTypeInfo{T::Q8_0, "Q8_0", 32, 34, true, 8, false},
    TensorTypeInfo{T::Q4_K, "Q4_K", 256, 144, true, 12, false},
    TensorTypeInfo{T::Q5_K, "Q5_K", 256, 176, true, 13, false},
    TensorTypeInfo{T::Q6_K, "Q6_K", 256, 210, true, 14, false},
    TensorTypeInfo{T::Q2_K, "Q2_K", 256, 84, true, 10, false},
    TensorTypeInfo{T::Q3_K, "Q3_K", 256, 110, true, 11, false},
    TensorTypeInfo{T::MXFP4, "MXFP4", 32, 17, true, 39, false},
    TensorTypeInfo{T::IQ2_XXS, "IQ2_XXS", 256, 66, true, 16, false},
    TensorTypeInfo{T::IQ2_XS, "IQ2_XS", 256, 74, true, 17, false},
    TensorTypeInfo{T::IQ2_S, "IQ2_S", 256, 82, true, 22, false},
    TensorTypeInfo{T::IQ3_XXS, "IQ3_XXS", 256, 98, true, 18, false},
    TensorTypeInfo{T::IQ3_S, "IQ3_S", 256, 110, true, 21, false},
    TensorTypeInfo{T::IQ4_NL, "IQ4_NL", 32, 18, true, 20, false},
    TensorTypeInfo{T::IQ4_XS, "IQ4_XS", 256, 136, true, 23, false},
    TensorTypeInfo{T::Q8_K, "Q8_K", 256, 292, false, 15, false},
    TensorTypeInfo{T::Q8_1, "Q8_1", 32, 40, false, 9, false},
    TensorTypeInfo{T::IQ1_S, "IQ1_S", 256, 50, false, 19, false},
    TensorTypeInfo{T::IQ1_M, "IQ1_M", 256, 56, false, 29, false},
    TensorTypeInfo{T::TQ1_0, "TQ1_0", 256, 54, false, 34, false},
    TensorTypeInfo{T::TQ2_0, "TQ2_0", 256, 66, false, 35, false},
    TensorTypeInfo{T::NVFP4, "NVFP4", 64, 36, false, 40, false},
    TensorTypeInfo{T::Q1_0, "Q1_0", 128, 18, false, 41, false},
};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

}  // namespace

const TensorTypeInfo& tensor_type_info(TensorType type) {
  const auto index = static_cast<size_t>(type);
  OCTAVO_CHECK(index < kTypes.size());
  return kTypes[index];
}

std::optional<TensorType> tensor_type_from_gguf(uint32_t id) {
  for (const TensorTypeInfo& info : kTypes) {
    if (info.gguf_id >= 0 && static_cast<uint32_t>(info.gguf_id) == id) return info.type;
  }
  return std::nullopt;
}

std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype) {
  for (const TensorTypeInfo& info : kTypes) {
    if (info.in_safetensors && info.name == dtype) return info.type;
  }
  return std::nullopt;
}

std::optional<int64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape) {
  const TensorTypeInfo& info = tensor_type_info(type);
  // The bound keeps the multiplication by block_bytes from overflowing.
  const int64_t limit = std::numeric_limits<int64_t>::max() / info.block_bytes;
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    OCTAVO_CHECK(size >= 0);
    if (size == 0) {
      empty = true;
    } else if (elements > limit / size) {
      return std::nullopt;
    } else {
      elements *= size;
    }
  }
  if (empty) return 0;
  OCTAVO_CHECK(elements % info.block_elements == 0);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace octavo
