#include "kernels/cpu/linear.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kFewRows = 32;           // up to here every weight is read once
constexpr int64_t kManyRowStrips = 8;      // strips a thread keeps in its cache while rows pass by
constexpr int64_t kClaimBytes = 96 << 10;  // of weights, when there are few rows

Arithmetic arithmetic_of(const LinearArgs& args) {
  if (args.x.dtype != DType::kBFloat16) return Arithmetic::kFloat32;
  for (size_t i = 0; i < args.part_count; ++i) {
    const PackedLayout& layout = args.parts[i].weight.layout;
    if (layout.bits == 0 && layout.dtype != DType::kBFloat16) return Arithmetic::kFloat32;
  }
  return Arithmetic::kBFloat16;
}

std::vector<LinearJob> jobs_of(const LinearArgs& args, const RowsJob& x) {
  std::vector<LinearJob> jobs;
  int64_t first = 0;
  const size_t count = args.is_gated ? 1 : args.part_count;
  for (size_t i = 0; i < count; ++i) {
    LinearJob job{
        .prepared = x.prepared,
        .arithmetic = x.arithmetic,
        .rows = x.rows,
        .weight = args.parts[i].weight,
        .bias = args.parts[i].bias,
        .bias_dtype = args.bias_dtype,
        .activation = args.activation,
        .residual = args.residual,
        .out = args.out,
        .out_dtype = args.out_dtype,
        .out_stride = args.out_stride,
        .out_first = first,
    };
    if (args.is_gated) {
      job.up = args.parts[1].weight;
      job.up_bias = args.parts[1].bias;
    }
    first += job.weight.layout.rows;
    jobs.push_back(job);
  }
  return jobs;
}

// Strips of one claim: small enough to share evenly, large enough to be worth claiming.
int64_t claim_strips(const LinearJob& job, int64_t total, int threads) {
  const int64_t fair = std::max<int64_t>(2, total / (int64_t{threads} * 4));
  const int64_t wanted = job.rows <= kFewRows
                             ? kClaimBytes / std::max<int64_t>(1, job.weight.layout.strip_bytes())
                             : kManyRowStrips;
  return std::clamp<int64_t>(std::min(fair, wanted), 2, 64) / 2 * 2;
}

void prepare_rows(const KernelTable& table, const RowsJob& x) {
  const auto prepare = [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.prepare(x, begin * kRowBlock, std::min(end * kRowBlock, x.rows));
  };
  const int64_t blocks = (x.rows + kRowBlock - 1) / kRowBlock;
  if (x.rows <= kFewRows) return prepare(0, blocks);
  compute_pool().parallel_for(blocks, 1, prepare);
}

}  // namespace

void linear(const LinearArgs& args) {
  if (args.x.rows == 0) return;
  const KernelTable& table = kernels();
  RowsJob x = args.x;
  x.arithmetic = arithmetic_of(args);
  x.prepared = scratch(Scratch::kRows, table.prepared_bytes(x.rows, x.cols, x.arithmetic));
  prepare_rows(table, x);

  const std::vector<LinearJob> jobs = jobs_of(args, x);
  int64_t total = 0;
  for (const auto& job : jobs) total += job.weight.layout.strips();
  const int64_t claim = claim_strips(jobs[0], total, compute_pool().threads());
  compute_pool().parallel_for(total, claim, [&](int64_t begin, int64_t end) {
    prepare_thread();
    int64_t base = 0;
    for (const auto& job : jobs) {
      const int64_t strips = job.weight.layout.strips();
      const int64_t from = std::max(begin, base) - base;
      const int64_t to = std::min(end, base + strips) - base;
      if (from < to) {
        std::byte* panels = scratch(Scratch::kPanels, table.linear_scratch(job, to - from));
        table.linear(job, from, to, panels);
      }
      base += strips;
    }
  });
}

int64_t linear_scratch_bytes(int64_t rows, int64_t cols, int threads) {
  const int64_t padded = (cols + kUnitCols - 1) / kUnitCols * kUnitCols;
  const int64_t prepared = (rows + 2 * kRowBlock) * padded * 4;
  const int64_t panels = kManyRowStrips * 2 * kStripRows * padded * 4;
  return prepared + threads * panels;
}

}  // namespace octavo::cpu
