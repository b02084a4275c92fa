// rows.h (cpu) - the operations that treat each row on its own: norm, gated activation.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace octavo::cpu {

struct RmsNormArgs {
  const void* x;  // [rows, dim]
  void* out;      // [rows, dim]
  DType dtype;
  const void* weight;  // [dim]
  DType weight_dtype;
  int64_t rows;
  int64_t dim;
  float eps;
};
void rms_norm(const RmsNormArgs& args);

struct GatedArgs {
  const void* gate;
  const void* up;
  void* out;
  DType dtype;
  int64_t count;
  bool gelu;  // tanh-approximated GELU instead of SiLU
};
void gated_activation(const GatedArgs& args);

}  // namespace octavo::cpu
