// tensor_type.h - the element types of model files and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo {

enum class TensorType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8_E4M3,
  F8_E5M2,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool,
  // GGUF blocks.
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q4_K,
  Q5_K,
  Q6_K,
  Q2_K,
  Q3_K,
  MXFP4,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  IQ4_NL,
  IQ4_XS,
  // GGUF blocks that are known only so that the refusal can name them.
  Q8_K,
  Q8_1,
  IQ1_S,
  IQ1_M,
  TQ1_0,
  TQ2_0,
  NVFP4,
  Q1_0,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;
  int64_t block_elements;  // 1 for plain types
  int64_t block_bytes;
  bool supported;       // false: parsers reject tensors of this type
  int gguf_id;          // -1: not a GGUF type
  bool in_safetensors;  // `name` is also its safetensors dtype
};

const TensorTypeInfo& tensor_type_info(TensorType type);

inline std::string_view tensor_type_name(TensorType type) { return tensor_type_info(type).name; }

// nullopt if the id is unknown. The result may be an unsupported type.
std::optional<TensorType> tensor_type_from_gguf(uint32_t id);
std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype);

// Bytes of a tensor; its innermost dimension must be whole blocks. nullopt if the product of all
// non-zero dimensions, in elements or bytes, exceeds int64, so that no partial product of `shape`
// can overflow.
std::optional<int64_t> tensor_bytes(TensorType type, std::span<const int64_t> shape);

}  // namespace octavo
