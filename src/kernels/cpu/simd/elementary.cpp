#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static Vec value_of(Elementary function, Vec x) {
  switch (function) {  // without a default, so that the compiler reports a missing function
    case Elementary::kExp:
      return exp(x);
    case Elementary::kExp2:
      return exp2(x);
    case Elementary::kTanh:
      return tanh(x);
    case Elementary::kSigmoid:
      return sigmoid(x);
    case Elementary::kSoftplus:
      return softplus(x);
    case Elementary::kSilu:
      return silu(x);
    case Elementary::kGeluTanh:
      return gelu_tanh(x);
    case Elementary::kErf:
      return erf(x);
    case Elementary::kGelu:
      return gelu(x);
  }
  return x;
}

static void elementary(Elementary function, const float* x, int64_t count, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, value_of(function, load(x + i)));
  if (i == count) return;
  store_part(y, DType::kFloat32, i, count - i,
             value_of(function, load_part(x, DType::kFloat32, i, count - i)));
}

void add_elementary_kernels(KernelTable& table) { table.elementary = elementary; }

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
