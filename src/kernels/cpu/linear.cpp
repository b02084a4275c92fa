#include "kernels/cpu/linear.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kFewRows = 32;  // up to here every weight is read once
constexpr int64_t kStripStep = 4;
constexpr int64_t kFewRowStrips = 64;  // strips of the longest claim when there are few rows
constexpr int64_t kManyRowStrips = 8;  // strips a thread keeps in its cache while rows pass by

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
        .scale = args.scale,
        .soft_cap = args.soft_cap,
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

// A run of one job's strips that a thread takes at once.
struct Claim {
  size_t job;
  int64_t begin;
  int64_t end;
};

// Long runs first, for they read memory best, then ever shorter ones, so that the threads finish
// together. Multiples of four: the tile kernels take so many strips at a time.
std::vector<Claim> claims_of(const std::vector<LinearJob>& jobs, int threads) {
  int64_t left = 0;
  for (const auto& job : jobs) left += job.weight.layout.strips();
  std::vector<Claim> claims;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int64_t strips = jobs[i].weight.layout.strips();
    const int64_t most = jobs[i].rows <= kFewRows ? kFewRowStrips : kManyRowStrips;
    for (int64_t begin = 0; begin < strips;) {
      const int64_t fair = left / (int64_t{threads} * 3) / kStripStep * kStripStep;
      const int64_t size = std::clamp(fair, kStripStep, most);
      const int64_t end = std::min(begin + size, strips);
      claims.push_back({i, begin, end});
      left -= end - begin;
      begin = end;
    }
  }
  return claims;
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
  const std::vector<Claim> claims = claims_of(jobs, compute_pool().threads());
  compute_pool().parallel_for(
      static_cast<int64_t>(claims.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        for (int64_t i = begin; i < end; ++i) {
          const Claim& claim = claims[static_cast<size_t>(i)];
          const LinearJob& job = jobs[claim.job];
          std::byte* panels =
              scratch(Scratch::kPanels, table.linear_scratch(job, claim.end - claim.begin));
          table.linear(job, claim.begin, claim.end, panels);
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
