#include "kernels/cpu/expert_mlp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/expert_rows.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/strip_claims.h"

namespace octavo::cpu {
namespace {

// Sums that a thread keeps while experts add to them in turn: 16 numbers per token and strip, half
// a megabyte in all.
constexpr int64_t kSumRuns = 8192;

// Calls body(group) for every group.
template <typename Body>
void for_groups(const ExpertRows& rows, const Body& body) {
  // For a few rows a second thread does not pay off.
  const int64_t grain = rows.most_rows <= kRowBlock ? 8 : 1;
  const auto groups = static_cast<int64_t>(rows.groups.size());
  compute_pool().parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    for (int64_t i = begin; i < end; ++i) body(rows.groups[static_cast<size_t>(i)]);
  });
}

// Prepares all gathered rows for a product. Groups begin at whole blocks of rows, and all blocks
// have the same size, so a group's rows form a product of their own.
class PreparedRows {
 public:
  PreparedRows(RowsJob job, const ExpertRows& rows) {
    const KernelTable& table = kernels();
    const auto bytes = [&](int64_t count) {
      return table.prepared_bytes(count, job.cols, job.arithmetic);
    };
    row_bytes_ = (bytes(2 * kRowBlock) - bytes(kRowBlock)) / kRowBlock;
    job.rows = rows.padded_rows;
    job.most_rows = rows.most_rows;
    job.prepared = scratch(Scratch::kRows, bytes(rows.padded_rows));
    data_ = job.prepared;
    for_groups(rows, [&](const ExpertGroup& group) {
      table.prepare(job, group.begin, group.begin + group.rows);
    });
  }

  const std::byte* of(const ExpertGroup& group) const { return data_ + group.begin * row_bytes_; }

 private:
  const std::byte* data_ = nullptr;
  int64_t row_bytes_ = 0;
};

const void* bias_of(const ExpertMatrix& matrix, const ExpertGroup& group, DType dtype) {
  if (matrix.bias == nullptr) return nullptr;
  return at(matrix.bias, dtype, group.expert * matrix.layout.rows);
}

const LoraJob* pointer_to(const std::optional<LoraJob>& job) { return job ? &*job : nullptr; }

// activation(gate(x)) * up(x) of every gathered row, to inner [padded rows, inner size].
void run_gate_and_up(const ExpertMlpArgs& args, const ExpertRows& rows,
                     const std::shared_ptr<const LoraPlan>& lora_plan, void* inner) {
  std::optional<ExpertLoraProducts> lora;
  if (lora_plan != nullptr)
    lora.emplace(RowsJob{.x = args.x,
                         .gathered = rows.tokens.data(),
                         .dtype = args.dtype,
                         .cols = args.gate.layout.cols},
                 lora_plan, std::vector<LoraView>{args.lora->gate, args.lora->up});
  std::vector<std::array<std::optional<LoraJob>, 2>> lora_jobs(lora ? rows.groups.size() : 0);
  const Arithmetic arithmetic = arithmetic_of(args.dtype, {&args.gate.layout, &args.up.layout});
  const PreparedRows x({.x = args.x,
                        .gathered = rows.tokens.data(),
                        .dtype = args.dtype,
                        .cols = args.gate.layout.cols,
                        .arithmetic = arithmetic},
                       rows);
  std::vector<LinearJob> jobs;
  for (size_t i = 0; i < rows.groups.size(); ++i) {
    const ExpertGroup& group = rows.groups[i];
    jobs.push_back({
        .prepared = x.of(group),
        .arithmetic = arithmetic,
        .rows = group.rows,
        .most_rows = rows.most_rows,
        .weight = args.gate.view(group.expert),
        .up = args.up.view(group.expert),
        .bias = bias_of(args.gate, group, args.bias_dtype),
        .up_bias = bias_of(args.up, group, args.bias_dtype),
        .bias_dtype = args.bias_dtype,
        .activation = args.activation,
        .out = at(inner, args.dtype, group.begin * args.gate.layout.rows),
        .out_dtype = args.dtype,
        .out_stride = args.gate.layout.rows,
    });
    if (!lora) continue;
    lora_jobs[i] = {lora->job(0, group), lora->job(1, group)};
    jobs.back().lora = pointer_to(lora_jobs[i][0]);
    jobs.back().up_lora = pointer_to(lora_jobs[i][1]);
  }
  run_products(jobs);
}

// The input of `down`. Row r of the gathered order is row pairs[r] of `data`; without pairs, row r.
struct InnerRows {
  const void* data = nullptr;
  const int32_t* pairs = nullptr;
};

// Strips of `down` of all experts: each thread sums its outputs over the experts in order.
class DownSums {
 public:
  DownSums(const ExpertMlpArgs& args, const ExpertRows& rows,
           const std::shared_ptr<const LoraPlan>& lora_plan, const InnerRows& inner)
      : args_(args),
        rows_(rows),
        lora_(lora_of(args, lora_plan, inner)),
        arithmetic_(arithmetic_of(args.dtype, {&args.down.layout})),
        inner_({.x = inner.data,
                .gathered = inner.pairs,
                .dtype = args.dtype,
                .cols = args.down.layout.cols,
                .arithmetic = arithmetic_},
               rows) {}

  void run() const {
    int64_t longest = longest_claim(rows_.most_rows);
    longest = std::min(longest, std::max(int64_t{8}, kSumRuns / args_.tokens));
    const std::array runs = {StripRun{args_.down.layout.strips(), longest}};
    const auto [strips, firsts] = strip_claims(runs, compute_pool().threads());
    compute_pool().parallel_shares(firsts, [&, &claims = strips](int64_t i, int64_t) {
      prepare_thread();
      run_claim(claims[static_cast<size_t>(i)]);
    });
  }

 private:
  static std::optional<ExpertLoraProducts> lora_of(const ExpertMlpArgs& args,
                                                   const std::shared_ptr<const LoraPlan>& plan,
                                                   const InnerRows& inner) {
    if (plan == nullptr) return std::nullopt;
    return ExpertLoraProducts({.x = inner.data,
                               .gathered = inner.pairs,
                               .dtype = args.dtype,
                               .cols = args.down.layout.cols},
                              plan, {args.lora->down});
  }

  void run_claim(const StripClaim& claim) const {
    const KernelTable& table = kernels();
    const int64_t width = (claim.end - claim.begin) * kStripRows;
    const int64_t first = claim.begin * kStripRows;
    const int64_t floats = (args_.tokens + rows_.most_rows) * width;
    auto* sums = reinterpret_cast<float*>(scratch(Scratch::kSums, floats * 4));
    float* products = sums + args_.tokens * width;
    std::memset(sums, 0, static_cast<size_t>(args_.tokens * width) * sizeof(float));
    for (const ExpertGroup& group : rows_.groups) {
      const std::optional<LoraJob> lora = lora_ ? lora_->job(0, group) : std::nullopt;
      const LinearJob job{
          .prepared = inner_.of(group),
          .arithmetic = arithmetic_,
          .rows = group.rows,
          .most_rows = rows_.most_rows,
          .weight = args_.down.view(group.expert),
          .bias = bias_of(args_.down, group, args_.bias_dtype),
          .bias_dtype = args_.bias_dtype,
          .lora = pointer_to(lora),
          .out = products,
          .out_stride = width,
          .out_first = -first,
      };
      table.linear(job, claim.begin, claim.end,
                   scratch(Scratch::kPanels, table.linear_scratch(job, claim.end - claim.begin)));
      for (int64_t m = 0; m < group.rows; ++m) {
        const auto row = static_cast<size_t>(group.begin + m);
        table.add_weighted(sums + rows_.tokens[row] * width, products + m * width,
                           rows_.weights[row], width);
      }
    }
    const int64_t hidden = args_.down.layout.rows;
    const ExpertSums done{
        .sums = sums,
        .sums_stride = width,
        .count = std::min(width, hidden - first),
        .shared = args_.shared,
        .shared_gate = args_.shared_gate,
        .residual = args_.residual,
        .out = args_.out,
        .dtype = args_.dtype,
        .out_stride = hidden,
        .out_first = first,
    };
    for (int64_t token = 0; token < args_.tokens; ++token) table.finish_sums(done, token);
  }

  const ExpertMlpArgs& args_;
  const ExpertRows& rows_;
  std::optional<ExpertLoraProducts> lora_;  // before inner_, which uses the same scratch memory
  Arithmetic arithmetic_;
  PreparedRows inner_;
};

std::span<const int32_t> ids_of(const ExpertMlpArgs& args) {
  return {args.ids, static_cast<size_t>(args.tokens * args.top_k)};
}

ExpertRows rows_of(const ExpertMlpArgs& args) {
  const std::span ids = ids_of(args);
  return gather_by_expert(ids, {args.weights, ids.size()}, args.top_k, args.experts);
}

// For the result of run_gate_and_up().
std::byte* inner_scratch(const ExpertMlpArgs& args, const ExpertRows& rows) {
  const auto bytes = static_cast<int64_t>(size_of(args.dtype));
  return scratch(Scratch::kInner, rows.padded_rows * args.gate.layout.rows * bytes);
}

}  // namespace

void expert_mlp(const ExpertMlpArgs& args) {
  if (args.tokens == 0) return;
  const ExpertRows rows = rows_of(args);
  void* inner = inner_scratch(args, rows);
  const auto lora_plan =
      args.lora != nullptr ? plan_expert_lora(*args.lora->tokens, rows, args.experts) : nullptr;
  run_gate_and_up(args, rows, lora_plan, inner);
  DownSums(args, rows, lora_plan, {inner}).run();
}

void expert_activations(const ExpertMlpArgs& args) {
  if (args.tokens == 0) return;
  const ExpertRows rows = rows_of(args);
  const std::vector<int32_t> pairs = pairs_of(rows, ids_of(args), args.experts);
  std::byte* inner = inner_scratch(args, rows);
  run_gate_and_up(args, rows, nullptr, inner);
  const size_t bytes = static_cast<size_t>(args.gate.layout.rows) * size_of(args.dtype);
  auto* out = static_cast<std::byte*>(args.out);
  for_groups(rows, [&](const ExpertGroup& group) {
    const auto end = static_cast<size_t>(group.begin + group.rows);
    for (auto row = static_cast<size_t>(group.begin); row < end; ++row)
      std::memcpy(out + static_cast<size_t>(pairs[row]) * bytes, inner + row * bytes, bytes);
  });
}

void expert_outputs(const ExpertMlpArgs& args) {
  if (args.tokens == 0) return;
  const ExpertRows rows = rows_of(args);
  const std::vector<int32_t> pairs = pairs_of(rows, ids_of(args), args.experts);
  DownSums(args, rows, nullptr, {args.x, pairs.data()}).run();
}

int64_t expert_mlp_scratch_bytes(const ExpertMlpShape& shape, int64_t tokens, int threads) {
  const int64_t pairs = tokens * shape.top_k;
  const int64_t rows = pairs + std::min(pairs, shape.experts) * (kRowBlock - 1);
  const int64_t products = std::max(linear_scratch_bytes(rows, shape.hidden, threads),
                                    linear_scratch_bytes(rows, shape.inner, threads));
  const int64_t sums = 2 * std::max(kSumRuns, 8 * tokens) * kStripRows * 4;
  return products + rows * shape.inner * 4 + threads * sums;
}

}  // namespace octavo::cpu
