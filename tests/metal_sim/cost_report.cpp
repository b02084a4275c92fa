// Prints what Octavo's Metal kernels cost per weight or per element of K and V, counted by the
// simulator, with MLX's kernels for comparison. The cost tables of docs/metal.md.
#include "metal_sim/cost_report.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <tuple>

#include "kernels/linear.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/weights.h"
#include "metal_sim/cost_table.h"
#include "metal_sim/mlx_kernels.h"
#include "metal_sim/simulator.h"
#include "metal_sim/speed_estimate.h"

namespace octavo {
namespace {

constexpr mx::Dtype kRowType = mx::float16;
constexpr DType kRowDType = DType::kFloat16;

constexpr metal_sim::MachineOptions kCosts{.finds_races = false, .costs = true};

using metal_sim::CostTable;
using metal_sim::MlxAttention;
using metal_sim::MlxProduct;
using metal_sim::SimulatedMetal;

double weights_of(const MlxProduct& shape) {
  return static_cast<double>(shape.inputs) * shape.outputs;
}

std::string with_shape(const std::string& name, const MlxProduct& shape) {
  return fmt::format("{}, {} x {} -> {}", name, shape.rows, shape.inputs, shape.outputs);
}

void add_linear(CostTable& table, const MlxProduct& shape, const Weight& weight) {
  std::mt19937 random(1);
  const mx::array x = random_array(random, {shape.rows, shape.inputs}, kRowType);
  SimulatedMetal metal(kCosts);
  mx::eval(linear(x, weight));
  table.add(with_shape("Octavo", shape), metal.counts(), weights_of(shape));
}

void add_mlx(CostTable& table, const std::string& name, const MlxProduct& shape,
             const metal_sim::KernelCounts& counts) {
  table.add(with_shape("MLX `" + name + "`", shape), {{name, counts}}, weights_of(shape));
}

Weight four_bits(const MlxProduct& shape) {
  std::mt19937 random(2);
  return random_affine(random, shape.outputs, shape.inputs, 4, 64, kRowDType);
}

void report_speed() {
  metal_sim::print_speed_head();
  for (const int rows : {1, 8, 64}) {
    // Few rows: outputs of a usual layer, on which the number of strips per threadgroup depends.
    const MlxProduct shape{rows, 1024, rows > 8 ? 256 : 2048};
    std::mt19937 random(1);
    const mx::array x = random_array(random, {rows, shape.inputs}, kRowType);
    const Weight dense = random_dense(random, shape.outputs, shape.inputs, kRowDType);
    for (const auto& [format, weight, bytes] :
         {std::tuple("16-bit", dense, 2.0), std::tuple("4-bit/64", four_bits(shape), 4.5 / 8)}) {
      SimulatedMetal metal(kCosts);
      mx::eval(linear(x, weight));
      metal_sim::print_speed({format, rows, bytes, weights_of(shape)}, metal.counts());
    }
  }
}

void report_few_rows() {
  CostTable table("4-bit/64", "weight");
  for (const MlxProduct& shape : {MlxProduct{1, 1024, 512}, MlxProduct{1, 2048, 512}}) {
    add_linear(table, shape, four_bits(shape));
    add_mlx(table, "qmv_fast", shape, mlx_qmv_fast(shape));
  }
  const MlxProduct shape{8, 1024, 2048};
  add_linear(table, shape, four_bits(shape));
  add_mlx(table, "qmv_fast", shape, mlx_qmv_fast(shape));
  add_mlx(table, "qmv_wide", shape, mlx_qmv_wide(shape));
  table.print();
}

void report_many_rows() {
  const MlxProduct shape{64, 1024, 128};
  CostTable packed("4-bit/64", "weight");
  add_linear(packed, shape, four_bits(shape));
  add_mlx(packed, "qmm_t", shape, mlx_qmm(shape));
  packed.print();
  CostTable dense("float16", "weight");
  std::mt19937 random(2);
  add_linear(dense, shape, random_dense(random, shape.outputs, shape.inputs, kRowDType));
  // Enough for tiles of 64 x 64; also per weight and 64 rows.
  const MlxProduct large{256, 512, 1280};
  {
    const Weight weight = random_dense(random, large.outputs, large.inputs, kRowDType);
    const mx::array x = random_array(random, {large.rows, large.inputs}, kRowType);
    SimulatedMetal metal(kCosts);
    mx::eval(linear(x, weight));
    dense.add(with_shape("Octavo", large), metal.counts(), weights_of(large) * large.rows / 64);
  }
  add_mlx(dense, "gemm", shape, mlx_gemm(shape));
  dense.print();
}

// Attention of one sequence over pages that hold its keys.
struct AttentionRun {
  static constexpr int kDim = 128;

  AttentionRun(int start, int rows, const MlxAttention& shape)
      : q_heads(shape.query_heads),
        of{.sequences = {{start, rows}},
           .geometry = {.kv_heads = shape.kv_heads,
                        .k_dim = kDim,
                        .v_dim = kDim,
                        .dtype = kRowDType},
           .q_heads = shape.query_heads,
           .options = {.scale = 1 / std::sqrt(static_cast<float>(kDim))}},
        fixture(of, KernelPath::kNative, 1) {
    std::mt19937 random(2);
    q = random_array(random, {rows, q_heads, kDim}, kRowType);
    const mx::array k = random_array(random, {rows, shape.kv_heads, kDim}, kRowType);
    pages = kv_write(fixture.pages(), k, k, fixture.layout(), fixture.tables());
    mx::eval(q, pages->bytes);
  }

  std::map<std::string, metal_sim::KernelCounts> counts() {
    SimulatedMetal metal(kCosts);
    mx::eval(paged_attention(q, *pages, fixture.layout(), fixture.tables(), of.options));
    return metal.counts();
  }

  int q_heads;
  PagedCase of;
  PagedFixture fixture;
  mx::array q = mx::array(0);
  std::optional<KvPages> pages;
};

void add_decode(CostTable& table, const MlxAttention& shape) {
  AttentionRun run(shape.keys - 1, 1, shape);
  const double elements = 2.0 * shape.keys * shape.kv_heads * AttentionRun::kDim;
  const std::string keys = fmt::format(", {} keys", shape.keys);
  table.add("Octavo" + keys, run.counts(), elements);
  table.add("MLX `sdpa_vector`" + keys, {{"sdpa_vector", mlx_sdpa_vector(shape)}}, elements);
}

// Per pair of a query head's row and a key that it sees.
void report_prefill_costs() {
  CostTable table("64 rows, float16, 8 query heads, 2 KV heads of 128", "pair of query and key");
  for (const int start : {0, 448}) {
    constexpr int kRows = 64;
    AttentionRun run(start, kRows, {8, 2, start + kRows});
    const double pairs = 8.0 * kRows * (start + (kRows + 1) / 2.0);
    table.add(fmt::format("Octavo, from {}", start), run.counts(), pairs);
  }
  table.print();
}

void report_attention_costs() {
  CostTable table("one row, float16, 8 query heads, 2 KV heads of 128", "element of K and V");
  for (const int keys : {512, 2048}) add_decode(table, {8, 2, keys});
  table.print();
}

}  // namespace

void print_cost_report() {
  report_few_rows();
  report_many_rows();
  report_attention_costs();
  report_prefill_costs();
  report_speed();
}

}  // namespace octavo
