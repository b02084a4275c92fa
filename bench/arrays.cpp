#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "bench/cases.h"
#include "kernels/runtime/device_buffer.h"

namespace octavo::bench {

mx::array spread_array(const mx::Shape& shape, mx::Dtype dtype) {
  mx::array out = make_device_buffer(shape, dtype);
  const bool wide = dtype == mx::float32;
  uint32_t state = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    if (wide) {
      out.data<float>()[i] = value;
    } else {
      out.data<uint16_t>()[i] = float_to_bf16(value);
    }
  }
  return out;
}

mx::array copy_of(const mx::array& array) {
  mx::array out = make_device_buffer(array.shape(), array.dtype());
  std::memcpy(out.data<void>(), array.data<void>(), array.nbytes());
  return out;
}

std::vector<mx::array> copies_of(const mx::array& array, int count) {
  std::vector<mx::array> out;
  for (int i = 0; i < count; ++i) out.push_back(copy_of(array));
  return out;
}

}  // namespace octavo::bench
