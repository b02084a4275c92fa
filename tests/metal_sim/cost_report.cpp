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

using metal_sim::MlxAttention;
using metal_sim::MlxProduct;
using metal_sim::SimulatedMetal;

std::string text_of(const MlxProduct& shape) {
  return fmt::format("{} x {} -> {}", shape.rows, shape.inputs, shape.outputs);
}

void print_mlx(const std::string& name, const MlxProduct& shape,
               const metal_sim::KernelCounts& counts) {
  metal_sim::print_costs("MLX `" + name + "`", text_of(shape), {{name, counts}},
                         static_cast<double>(shape.inputs) * shape.outputs);
}

void report_product(const MlxProduct& shape, const std::string& format) {
  std::mt19937 random(1);
  const mx::array x = random_array(random, {shape.rows, shape.inputs}, kRowType);
  const Weight weight = format == "float16"
                            ? random_dense(random, shape.outputs, shape.inputs, kRowDType)
                            : random_affine(random, shape.outputs, shape.inputs, 4, 64, kRowDType);
  SimulatedMetal metal({.finds_races = false, .costs = true});
  mx::eval(linear(x, weight));
  metal_sim::print_costs("Octavo " + format, text_of(shape), metal.counts(),
                         static_cast<double>(shape.inputs) * shape.outputs);
}

void report_products_of_few_rows() {
  metal_sim::print_cost_head("weight");
  for (const MlxProduct& shape : {MlxProduct{1, 1024, 512}, MlxProduct{1, 2048, 512}}) {
    report_product(shape, "4-bit/64");
    print_mlx("qmv_fast", shape, mlx_qmv_fast(shape));
  }
  const MlxProduct eight{8, 1024, 512};
  report_product(eight, "4-bit/64");
  print_mlx("qmv_fast", eight, mlx_qmv_fast(eight));
  print_mlx("qmv_wide", eight, mlx_qmv_wide(eight));
}

void report_products_of_many_rows() {
  metal_sim::print_cost_head("weight");
  const MlxProduct shape{64, 1024, 128};
  report_product(shape, "4-bit/64");
  print_mlx("qmm_t", shape, mlx_qmm(shape));
  report_product(shape, "float16");
  print_mlx("gemm", shape, mlx_gemm(shape));
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
  const double elements = 2.0 * shape.keys * shape.kv_heads * kDim;
  const std::string text =
      fmt::format("{} keys, {}/{} heads", shape.keys, shape.query_heads, shape.kv_heads);
  {
    SimulatedMetal metal({.finds_races = false, .costs = true});
    mx::eval(paged_attention(q, pages, fixture.layout(), fixture.tables(), c.options));
    metal_sim::print_costs("Octavo `paged_attention`", text, metal.counts(), elements);
  }
  metal_sim::print_costs("MLX `sdpa_vector`", text, {{"sdpa_vector", mlx_sdpa_vector(shape)}},
                         elements);
}

}  // namespace

void print_cost_report() {
  report_products_of_few_rows();
  report_products_of_many_rows();
  metal_sim::print_cost_head("element of K and V");
  for (const int keys : {512, 2048}) report_decode({8, 2, keys});
}

}  // namespace octavo
