// convert.h - rows of any compute type to float32 and back (round to nearest even).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo::cpu {

// `source` may be unaligned.
void load_floats(const void* source, DType dtype, int64_t count, float* out);
void store_floats(const float* source, int64_t count, DType dtype, void* out);

// The address of element `index` in an array of `dtype`.
inline const void* at(const void* base, DType dtype, int64_t index) {
  return static_cast<const std::byte*>(base) + index * static_cast<int64_t>(size_of(dtype));
}
inline void* at(void* base, DType dtype, int64_t index) {
  return static_cast<std::byte*>(base) + index * static_cast<int64_t>(size_of(dtype));
}

}  // namespace octavo::cpu
