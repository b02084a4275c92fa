// gate_rows.h (simd) - x * gate or x * sigmoid(gate), row by row. No MLX.
#pragma once

#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static void gate_rows(const GateJob& job, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t c = 0; c < job.cols; c += kLanes) {
      const int64_t left = job.cols - c;
      const Vec x = load_upto16(job.x, job.dtype, row * job.x_stride + c, left);
      const Vec gate = load_upto16(job.gate, job.dtype, row * job.gate_stride + c, left);
      const Vec y = mul(x, job.sigmoid ? sigmoid(gate) : gate);
      if (left >= kLanes) {
        store_as(job.out, job.dtype, row * job.cols + c, y);
      } else {
        store_part(job.out, job.dtype, row * job.cols + c, left, y);
      }
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
