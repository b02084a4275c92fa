#include "kernels/cpu/linear.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/strip_claims.h"

namespace octavo::cpu {
namespace {

Arithmetic arithmetic_of_part(const LinearArgs& args, size_t part) {
  const PackedLayout& layout = args.parts[part].weight.layout;
  if (!args.is_gated) return arithmetic_of(args.x.dtype, {&layout});
  return arithmetic_of(args.x.dtype, {&layout, &args.parts[1].weight.layout});
}

// The products of one arithmetic, with rows that are still to be prepared.
std::vector<LinearJob> jobs_of(const LinearArgs& args, const LoraProducts* lora,
                               Arithmetic arithmetic) {
  std::vector<LinearJob> jobs;
  int64_t first = 0;
  const size_t count = args.is_gated ? 1 : args.part_count;
  for (size_t i = 0; i < count; first += args.parts[i].weight.layout.rows, ++i) {
    if (arithmetic_of_part(args, i) != arithmetic) continue;
    LinearJob job{
        .arithmetic = arithmetic,
        .rows = args.x.rows,
        .weight = args.parts[i].weight,
        .bias = args.parts[i].bias,
        .bias_dtype = args.bias_dtype,
        .lora = lora != nullptr ? lora->job(i) : nullptr,
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
      if (lora != nullptr) job.up_lora = lora->job(1);
    }
    jobs.push_back(job);
  }
  return jobs;
}

RowsJob prepare_rows(const LinearArgs& args, Arithmetic arithmetic) {
  const KernelTable& table = kernels();
  RowsJob x = args.x;
  x.arithmetic = arithmetic;
  x.prepared = scratch(Scratch::kRows, table.prepared_bytes(x.rows, x.cols, arithmetic));
  const auto prepare = [&](int64_t begin, int64_t end) {
    prepare_thread();
    table.prepare(x, begin * kRowBlock, std::min(end * kRowBlock, x.rows));
  };
  const int64_t blocks = (x.rows + kRowBlock - 1) / kRowBlock;
  if (x.rows <= kFewRows) {
    prepare(0, blocks);
  } else {
    compute_pool().parallel_for(blocks, 1, prepare);
  }
  return x;
}

}  // namespace

void linear(const LinearArgs& args) {
  if (args.x.rows == 0) return;
  std::optional<RowsJob> rows;
  std::optional<LoraProducts> lora;
  if (args.lora != nullptr) {
    const Arithmetic arithmetic = lora_arithmetic(args.x.dtype, *args.lora);
    if (lora_shares_rows(args.x.rows, arithmetic)) rows = prepare_rows(args, arithmetic);
    lora.emplace(rows.value_or(args.x), *args.lora);
  }
  // Nearly always there is only one.
  for (const Arithmetic arithmetic :
       {Arithmetic::kFloat32, Arithmetic::kBFloat16, Arithmetic::kInteger}) {
    std::vector<LinearJob> jobs = jobs_of(args, lora ? &*lora : nullptr, arithmetic);
    if (jobs.empty()) continue;
    if (!rows || rows->arithmetic != arithmetic) rows = prepare_rows(args, arithmetic);
    for (LinearJob& job : jobs) job.prepared = rows->prepared;
    run_products(jobs);
  }
}

Arithmetic arithmetic_of(DType x, std::initializer_list<const PackedLayout*> weights) {
  const PackedLayout& first = **weights.begin();
  if (x != DType::kBFloat16) return Arithmetic::kFloat32;
  // A gated pair is multiplied in one pass, which reads both matrices alike.
  const auto is_alike = [&](const PackedLayout* layout) {
    return layout->bits == first.bits && layout->group_size == first.group_size &&
           layout->zero == first.zero && layout->scale_kind == first.scale_kind &&
           layout->table == first.table && (layout->bits != 0 || layout->dtype == DType::kBFloat16);
  };
  if (!std::all_of(weights.begin(), weights.end(), is_alike)) return Arithmetic::kFloat32;
  return first.bits != 0 ? Arithmetic::kInteger : Arithmetic::kBFloat16;
}

void run_products(std::span<const LinearJob> jobs) {
  const KernelTable& table = kernels();
  std::vector<StripRun> runs;
  for (const LinearJob& job : jobs)
    runs.push_back({job.weight.layout.strips(), longest_claim(job.rows)});
  const auto [strips, firsts] = strip_claims(runs, compute_pool().threads());
  compute_pool().parallel_shares(firsts, [&, &claims = strips](int64_t i, int64_t) {
    prepare_thread();
    const StripClaim& claim = claims[static_cast<size_t>(i)];
    const LinearJob& job = jobs[claim.run];
    std::byte* panels =
        scratch(Scratch::kPanels, table.linear_scratch(job, claim.end - claim.begin));
    table.linear(job, claim.begin, claim.end, panels);
  });
}

int64_t linear_scratch_bytes(int64_t rows, int64_t cols, int threads) {
  const int64_t padded = (cols + kUnitCols - 1) / kUnitCols * kUnitCols;
  const int64_t prepared = (rows + 2 * kRowBlock) * padded * 4;
  const int64_t panels = longest_claim(kFewRows + 1) * 2 * kStripRows * padded * 4;
  return prepared + threads * panels;
}

}  // namespace octavo::cpu
