#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kPieceElements = 16384;  // below this a second thread costs more than it brings

int64_t rows_per_piece(int64_t row_elements) {
  return std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
}

}  // namespace

void norm_rows(const RowsJob& job, void* out) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(job.rows, rows_per_piece(job.cols), [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.norm_rows(job, out, begin, end);
  });
}

void gated_activation(const GatedArgs& args) {
  const KernelTable& table = kernels();
  compute_pool().parallel_for(args.count, kPieceElements, [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.gated(at(args.gate, args.dtype, begin), at(args.up, args.dtype, begin),
                at(args.out, args.dtype, begin), args.dtype, args.activation, end - begin);
  });
}

}  // namespace octavo::cpu
