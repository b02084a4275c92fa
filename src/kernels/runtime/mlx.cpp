#include "kernels/runtime/mlx.h"

#include "base/error.h"

namespace octavo {

mx::Dtype mlx_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return mx::float32;
    case DType::kFloat16:
      return mx::float16;
    case DType::kBFloat16:
      return mx::bfloat16;
  }
  OCTAVO_CHECK(false);
  return mx::float32;
}

DType dtype_of(const mx::array& array) {
  if (array.dtype() == mx::float32) return DType::kFloat32;
  if (array.dtype() == mx::float16) return DType::kFloat16;
  OCTAVO_CHECK(array.dtype() == mx::bfloat16);
  return DType::kBFloat16;
}

}  // namespace octavo
