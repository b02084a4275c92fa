// Prints what Octavo's Metal kernels cost per weight or per element of K and V, counted by the
// simulator, with MLX's kernels for comparison. The cost tables of docs/metal.md.
#include "metal_sim/cost_report.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "kernels/linear.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/weights.h"
#include "metal_sim/cost_table.h"
#include "metal_sim/mlx_kernels.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

constexpr mx::Dtype kRowType = mx::float16;
constexpr DType kRowDType = DType::kFloat16;

constexpr metal_sim::MachineOptions kCosts{.finds_races = false, .costs = true};

using metal_sim::CostTable;
using metal_sim::MlxAttention;
using metal_sim::MlxProduct;
using metal_sim::SimulatedMetal;

std::string text_of(const MlxProduct& shape) {
  return fmt::format("{} x {} -> {}", shape.rows, shape.inputs, shape.outputs);
}

CostTable table_of(const MlxProduct& shape, const std::string& format) {
  return {text_of(shape) + ", " + format, "weight",
          static_cast<double>(shape.inputs) * shape.outputs};
}

void add_linear(CostTable& table, const MlxProduct& shape, const Weight& weight) {
  std::mt19937 random(1);
  const mx::array x = random_array(random, {shape.rows, shape.inputs}, kRowType);
  SimulatedMetal metal(kCosts);
  mx::eval(linear(x, weight));
  table.add("Octavo", metal.counts());
}

void add_mlx(CostTable& table, const std::string& name, const metal_sim::KernelCounts& counts) {
  table.add("MLX `" + name + "`", {{name, counts}});
}

Weight four_bits(const MlxProduct& shape) {
  std::mt19937 random(2);
  return random_affine(random, shape.outputs, shape.inputs, 4, 64, kRowDType);
}

void report_few_rows() {
  for (const MlxProduct& shape : {MlxProduct{1, 1024, 512}, MlxProduct{1, 2048, 512}}) {
    CostTable table = table_of(shape, "4-bit/64");
    add_linear(table, shape, four_bits(shape));
    add_mlx(table, "qmv_fast", mlx_qmv_fast(shape));
    table.print();
  }
  const MlxProduct shape{8, 1024, 2048};
  CostTable table = table_of(shape, "4-bit/64");
  add_linear(table, shape, four_bits(shape));
  add_mlx(table, "qmv_fast", mlx_qmv_fast(shape));
  add_mlx(table, "qmv_wide", mlx_qmv_wide(shape));
  table.print();
}

void report_many_rows() {
  const MlxProduct shape{64, 1024, 128};
  CostTable packed = table_of(shape, "4-bit/64");
  add_linear(packed, shape, four_bits(shape));
  add_mlx(packed, "qmm_t", mlx_qmm(shape));
  packed.print();
  CostTable dense = table_of(shape, "float16");
  std::mt19937 random(2);
  add_linear(dense, shape, random_dense(random, shape.outputs, shape.inputs, kRowDType));
  add_mlx(dense, "gemm", mlx_gemm(shape));
  dense.print();
}

void report_decode(const MlxAttention& shape) {
  constexpr int kDim = 128;
  const PagedCase c{
      .sequences = {{shape.keys - 1, 1}},
      .geometry = {.kv_heads = shape.kv_heads, .k_dim = kDim, .v_dim = kDim, .dtype = kRowDType},
      .q_heads = shape.query_heads,
      .options = {.scale = 1 / std::sqrt(static_cast<float>(kDim))}};
  std::mt19937 random(2);
  const mx::array q = random_array(random, {1, shape.query_heads, kDim}, kRowType);
  const mx::array k = random_array(random, {1, shape.kv_heads, kDim}, kRowType);
  PagedFixture fixture(c, KernelPath::kNative, 1);
  const KvPages pages = kv_write(fixture.pages(), k, k, fixture.layout(), fixture.tables());
  mx::eval(pages.bytes);
  CostTable table(fmt::format("decode, {} keys, {}/{} heads of 128, float16", shape.keys,
                              shape.query_heads, shape.kv_heads),
                  "element of K and V", 2.0 * shape.keys * shape.kv_heads * kDim);
  {
    SimulatedMetal metal(kCosts);
    mx::eval(paged_attention(q, pages, fixture.layout(), fixture.tables(), c.options));
    table.add("Octavo", metal.counts());
  }
  add_mlx(table, "sdpa_vector", mlx_sdpa_vector(shape));
  table.print();
}

}  // namespace

void print_cost_report() {
  report_few_rows();
  report_many_rows();
  for (const int keys : {512, 2048}) report_decode({8, 2, keys});
}

}  // namespace octavo
