#include "kernels/cpu/convert.h"

#include <cstring>

#include "base/half.h"
#include "kernels/cpu/clones.h"

namespace octavo::cpu {
namespace {

// Tensors in files may start at odd addresses.
inline uint16_t load_bits(const std::byte* source, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, source + index * 2, sizeof bits);
  return bits;
}

OCTAVO_CLONES
void load_bf16(const std::byte* source, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(load_bits(source, i));
}

OCTAVO_CLONES
void store_bf16(const float* source, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = float_to_bf16(source[i]);
}

void load_half(const std::byte* source, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(load_bits(source, i));
}

void store_half(const float* source, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = float_to_half(source[i]);
}

}  // namespace

void load_floats(const void* source, DType dtype, int64_t count, float* out) {
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kFloat16:
      return load_half(static_cast<const std::byte*>(source), count, out);
    case DType::kBFloat16:
      return load_bf16(static_cast<const std::byte*>(source), count, out);
  }
}

void store_floats(const float* source, int64_t count, DType dtype, void* out) {
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kFloat16:
      return store_half(source, count, static_cast<uint16_t*>(out));
    case DType::kBFloat16:
      return store_bf16(source, count, static_cast<uint16_t*>(out));
  }
}

}  // namespace octavo::cpu
