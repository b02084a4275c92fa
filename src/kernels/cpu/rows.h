// rows.h (cpu) - the operations that treat each row on its own: norm, rope, gated activation.
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

struct RopeArgs {
  const void* x;  // [tokens, heads, dim]
  void* out;      // [tokens, heads, dim]
  DType dtype;
  const int32_t* positions;          // [tokens]
  const float* inverse_frequencies;  // [pairs]
  int64_t tokens;
  int64_t heads;
  int64_t dim;
  int64_t pairs;
  float magnitude;
};
void rope(const RopeArgs& args);

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
