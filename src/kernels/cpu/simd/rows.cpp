#include "kernels/cpu/simd/expert_ops.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static void add_rows(const AddRowsJob& job, int64_t row_begin, int64_t row_end) {
  const RowsJob& y = job.y;
  const Vec scale = set1(job.scale);
  const Vec out_scale = set1(job.out_scale);
  const Vec bound = set1(65504);  // float16's largest
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(y, row);
    for (int64_t k = 0; k < y.cols; k += kLanes) {
      const int64_t left = y.cols - k;
      const int64_t index = row * y.cols + k;
      const Vec x = load_upto16(job.x, y.dtype, index, left);
      Vec v = mul(fma(normed16(y, row, norm, k), scale, x), out_scale);
      if (y.dtype == DType::kFloat16) v = max(sub(zero(), bound), min(bound, v));
      if (left >= kLanes) {
        store_as(job.out, y.dtype, index, v);
      } else {
        store_part(job.out, y.dtype, index, left, v);
      }
    }
  }
}

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

void add_row_kernels(KernelTable& table) {
  table.norm_rows = norm_rows;
  table.add_rows = add_rows;
  table.gated = gated;
  table.gate_rows = gate_rows;
  table.expert_scores = expert_scores;
  table.add_weighted = add_weighted;
  table.finish_sums = finish_sums;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
