// rows.h (cpu) - the operations on independent rows: norm, sum, activation.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {

// out = norm(job.x), with the layout of x.
void norm_rows(const RowsJob& job, void* out);

void add_rows(const AddRowsJob& job);

// gate and out: [rows, cols]   up: row r at r * up_stride, or null: without a gate, up_stride = cols
struct GatedArgs {
  const void* gate;
  const void* up;
  void* out;
  DType dtype;
  int64_t rows;
  int64_t cols;
  int64_t up_stride;
  Activation activation;
};
void gated_activation(const GatedArgs& args);

void gate_rows(const GateJob& job);

}  // namespace octavo::cpu
