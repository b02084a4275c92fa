// rows.h (cpu) - the operations that treat each row on its own: norm, rope, gated activation.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {

// out = norm(job.x), laid out as x is.
void norm_rows(const RowsJob& job, void* out);

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
  Activation activation;
};
void gated_activation(const GatedArgs& args);

}  // namespace octavo::cpu
