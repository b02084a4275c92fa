#include "kernels/cpu/head_linear.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

// Prepares the rows of all heads for their products, in whole blocks of rows per head, so that a
// head's rows form a product of their own.
class PreparedHeads {
 public:
  PreparedHeads(const HeadLinearArgs& args, Arithmetic arithmetic)
      : args_(args), blocks_((args.rows + kRowBlock - 1) / kRowBlock) {
    const KernelTable& table = kernels();
    job_.dtype = args.dtype;
    job_.rows = args.rows;
    job_.cols = args.weight.layout.cols;
    job_.stride = args.heads * args.x_stride;
    job_.arithmetic = arithmetic;
    const auto bytes = [&](int64_t blocks) {
      return table.prepared_bytes(blocks * kRowBlock, job_.cols, arithmetic);
    };
    block_bytes_ = bytes(2) - bytes(1);
    job_.prepared = scratch(Scratch::kRows, bytes(args.heads * blocks_));
    const int64_t grain = rows_per_piece(kRowBlock * job_.cols);
    compute_pool().parallel_for(args.heads * blocks_, grain, [&](int64_t begin, int64_t end) {
      prepare_thread();
      for (int64_t i = begin; i < end; ++i) prepare_block(table, i / blocks_, i % blocks_);
    });
  }

  const std::byte* of(int64_t head) const { return job_.prepared + head * blocks_ * block_bytes_; }

 private:
  void prepare_block(const KernelTable& table, int64_t head, int64_t block) const {
    RowsJob job = job_;
    job.x = at(args_.x, args_.dtype, head * args_.x_stride);
    job.prepared += head * blocks_ * block_bytes_;
    table.prepare(job, block * kRowBlock, std::min((block + 1) * kRowBlock, args_.rows));
  }

  const HeadLinearArgs& args_;
  int64_t blocks_;
  int64_t block_bytes_ = 0;
  RowsJob job_;
};

}  // namespace

void head_linear(const HeadLinearArgs& args) {
  if (args.rows == 0) return;
  const int64_t outputs = args.weight.layout.rows / args.heads;
  OCTAVO_CHECK(outputs * args.heads == args.weight.layout.rows && outputs % kStripRows == 0);
  const Arithmetic arithmetic = arithmetic_of(args.dtype, {&args.weight.layout});
  const PreparedHeads x(args, arithmetic);
  std::vector<LinearJob> jobs;
  for (int64_t h = 0; h < args.heads; ++h) {
    PackedView weight{args.weight.layout, args.weight.strip(h * outputs / kStripRows)};
    weight.layout.rows = outputs;
    jobs.push_back({
        .prepared = x.of(h),
        .arithmetic = arithmetic,
        .rows = args.rows,
        .weight = weight,
        .out = args.out,
        .out_dtype = args.dtype,
        .out_stride = args.heads * args.out_stride,
        .out_first = h * args.out_stride,
    });
  }
  run_products(jobs);
}

}  // namespace octavo::cpu
