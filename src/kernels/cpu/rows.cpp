#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/pieces.h"

namespace octavo::cpu {
void norm_rows(const RowsJob& job, void* out) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(job.rows, rows_per_piece(job.cols), [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.norm_rows(job, out, begin, end);
  });
}

void add_rows(const AddRowsJob& job) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(job.y.rows, rows_per_piece(job.y.cols),
                              [&](int64_t begin, int64_t end) {
                                prepare_thread();
                                table.add_rows(job, begin, end);
                              });
}

void gated_activation(const GatedArgs& args) {
  const KernelTable& table = kernels();
  const auto run = [&](int64_t from, int64_t up_from, int64_t count) {
    const void* up = args.up != nullptr ? at(args.up, args.dtype, up_from) : nullptr;
    table.gated(at(args.gate, args.dtype, from), up, at(args.out, args.dtype, from), args.dtype,
                args.activation, count);
  };
  if (args.up_stride == args.cols) {
    compute_pool().parallel_for(args.rows * args.cols, kPieceElements,
                                [&](int64_t begin, int64_t end) {
                                  prepare_thread();
                                  run(begin, begin, end - begin);
                                });
    return;
  }
  compute_pool().parallel_for(args.rows, rows_per_piece(args.cols),
                              [&](int64_t begin, int64_t end) {
                                prepare_thread();
                                for (int64_t row = begin; row < end; ++row)
                                  run(row * args.cols, row * args.up_stride, args.cols);
                              });
}

void gate_rows(const GateJob& job) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(job.rows, rows_per_piece(job.cols), [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.gate_rows(job, begin, end);
  });
}

}  // namespace octavo::cpu
