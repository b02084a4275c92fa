// Prints what each Metal kernel loads, stores and computes, counted by the simulator, and the
// minimum; then the cost tables (cost_report.h). The tables of docs/metal.md.
//
// usage: metal_report [costs]   ("costs": only the cost tables)
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/activation.h"
#include "kernels/add_rows.h"
#include "kernels/causal_conv.h"
#include "kernels/expert_routing.h"
#include "kernels/gate_rows.h"
#include "kernels/gated_delta.h"
#include "kernels/head_linear.h"
#include "kernels/linear.h"
#include "kernels/metal/kernel_source.h"
#include "kernels/rope.h"
#include "kernels/sampling.h"
#include "kernels/testing/experts.h"
#include "kernels/testing/latent_fixture.h"
#include "kernels/testing/paged_fixture.h"
#include "kernels/testing/qkv_variants.h"
#include "kernels/testing/state_fixture.h"
#include "metal_sim/cost_report.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

constexpr mx::Dtype kType = mx::float16;
constexpr DType kDType = DType::kFloat16;

// The minimum for any implementation.
struct Bound {
  double outputs;
  double load_bytes;
  double store_bytes;
  double multiply_adds = 0;  // 0: negligible
};

class Report {
 public:
  Report() {
    std::puts(
        "| operation | shape | kernels | loads, bytes per output | least | stores | least "
        "| multiply-adds | least | barriers per threadgroup | threadgroup bytes |");
    std::puts("|---|---|---|---|---|---|---|---|---|---|---|");
  }

  void row(const std::string& operation, const std::string& shape, const Bound& bound,
           const std::function<void()>& run) {
    metal_.reset();
    run();
    double loads = 0, stores = 0, multiply_adds = 0, barriers = 0, groups = 0;
    size_t threadgroup_bytes = 0;
    std::string kernels;
    for (const auto& [name, counts] : metal_.counts()) {
      kernels += (kernels.empty() ? "" : ", ") + name;
      multiply_adds += static_cast<double>(counts.multiply_adds);
      barriers += static_cast<double>(counts.barriers);
      groups += static_cast<double>(counts.threadgroups);
      threadgroup_bytes = std::max(threadgroup_bytes, counts.threadgroup_bytes);
      for (const auto& [argument, accesses] : counts.arguments) {
        if (is_place(name, argument)) continue;
        loads += static_cast<double>(accesses.load_bytes);
        stores += static_cast<double>(accesses.store_bytes);
      }
    }
    std::printf("| %s | %s | `%s` | %s | %s | %s | %s | %s | %s | %.3g | %zu |\n",
                operation.c_str(), shape.c_str(), kernels.c_str(), per(loads, bound).c_str(),
                per(bound.load_bytes, bound).c_str(), per(stores, bound).c_str(),
                per(bound.store_bytes, bound).c_str(), per(multiply_adds, bound).c_str(),
                bound.multiply_adds > 0 ? per(bound.multiply_adds, bound).c_str() : "",
                barriers / groups, threadgroup_bytes);
  }

 private:
  // Index data, which all threads read alike, so a simdgroup reads it at once.
  static bool is_place(const std::string& kernel, const std::string& argument) {
    for (const metal::Parameter& parameter : metal::find_kernel(kernel).parameters)
      if (parameter.name == argument)
        return parameter.kind == metal::ParameterKind::kBytes ||
               (parameter.kind == metal::ParameterKind::kInput && parameter.type == "int");
    return false;
  }

  static std::string per(double count, const Bound& bound) {
    return fmt::format("{:.3g}", count / bound.outputs);
  }

  metal_sim::SimulatedMetal metal_;
};

void eval(mx::array array) { array.eval(); }

void report_rows(Report& report, std::mt19937& random, int rows) {
  constexpr int kCols = 1024;
  const double n = double{kCols} * rows;
  const mx::array x = random_array(random, {rows, kCols}, kType);
  const mx::array y = random_array(random, {rows, kCols}, kType);
  const mx::array weight = random_array(random, {kCols}, kType);
  const std::string shape = fmt::format("{} x {}", rows, kCols);
  report.row("norm", shape, {n, 2 * n + 2 * kCols, 2 * n, n},
             [&] { eval(rms_norm(x, weight, 1e-6f)); });
  report.row("add_rows", shape, {n, 4 * n, 2 * n, n}, [&] { eval(add_rows(x, y)); });
  const NormSpec norm{.weight = weight, .eps = 1e-6f};
  report.row("add_rows, normed", shape, {n, 4 * n + 2 * kCols, 2 * n, 2 * n},
             [&] { eval(add_rows(x, y, {.norm = norm})); });
  report.row("gated_activation", shape, {n, 4 * n, 2 * n},
             [&] { eval(gated_activation(x, y, Activation::kSilu)); });
  report.row("gate_rows", shape, {n, 4 * n, 2 * n},
             [&] { eval(gate_rows({x}, {y}, kCols, Gate::kSigmoid)); });
}

void report_rope(Report& report, std::mt19937& random, int rows) {
  const mx::array x = random_array(random, {rows, 8, 128}, kType);
  const mx::array positions = int_array(std::vector<int>(static_cast<size_t>(rows), 7));
  const mx::array frequencies = random_array(random, {64});
  const double n = 8.0 * 128 * rows;
  report.row("rope", fmt::format("{} x 8 heads of 128", rows), {n, 2 * n + 4.0 * 64, 2 * n},
             [&] { eval(rope(x, positions, frequencies)); });
}

void report_latent_write(Report& report, int rows) {
  const latent_fixture::LatentShape shape{256, 32, 64, 8};
  PagedCase c = latent_fixture::case_of(shape, kDType);
  c.sequences = {{40, rows}};
  const auto in = latent_fixture::inputs_of(shape, kDType, rows);
  PagedFixture fixture(c, KernelPath::kNative, 1);
  const double n = (8.0 + 1) * (256 + 32) * rows;  // queries and latent rows
  const double loads =
      static_cast<double>(in.absorbed.bytes()) + 2.0 * rows * (8 * (64 + 32) + 256 + 32);
  report.row("latent_write", fmt::format("{} rows, 8 heads, rank 256 + 32", rows),
             {n, loads, 2 * n, 8.0 * rows * 256 * 64}, [&] {
               const QkvWritten written =
                   latent_write(fixture.pages(), in.rows, in.absorbed, fixture.layout(),
                                fixture.tables(), in.options);
               mx::eval(written.q, written.pages.bytes);
             });
}

void report_place_tokens(Report& report, int rows) {
  const mx::array tokens = int_array(std::vector<int>(static_cast<size_t>(rows), 1));
  const mx::array sources = int_array(std::vector<int>(static_cast<size_t>(rows), 0));
  report.row("place_tokens", fmt::format("{} rows", rows),
             {static_cast<double>(rows), 0, 4.0 * rows},
             [&] { eval(place_tokens(tokens, sources, int_array({5}))); });
}

void report_qkv(Report& report, std::mt19937& random, int rows) {
  PagedCase c = qkv_variants::case_of(kDType, 128);
  c.sequences = {{40, rows}};
  const QkvOptions options{.q_heads = qkv_variants::kQHeads,
                           .q_norm = random_array(random, {128}, kType),
                           .k_norm = random_array(random, {128}, kType),
                           .inverse_frequencies = qkv_variants::random_frequencies(random, 64)};
  const double n = double{4 + 2 + 2} * 128 * rows;
  const mx::array qkv = qkv_variants::random_rows(random, c, options, rows);
  PagedFixture fixture(c, KernelPath::kNative, 1);
  report.row("qkv_write", fmt::format("{} rows, 4 + 2 + 2 heads of 128", rows), {n, 2 * n, 2 * n},
             [&] {
               const QkvWritten written =
                   qkv_write(fixture.pages(), qkv, fixture.layout(), fixture.tables(), options);
               mx::eval(written.q, written.pages.bytes);
             });
}

void report_attention(Report& report, const std::vector<PagedSequence>& sequences, int q_heads,
                      const PageGeometry& g, const std::string& name, const std::string& shape) {
  PagedCase c{.sequences = sequences,
              .geometry = g,
              .q_heads = q_heads,
              .options = {.scale = 1 / std::sqrt(static_cast<float>(g.k_dim))}};
  double keys = 0, rows = 0, pairs = 0;
  for (const auto& s : sequences) {
    keys += s.cached + s.rows;
    rows += s.rows;
    for (int i = 0; i < s.rows; ++i) pairs += s.cached + i + 1;
  }
  const double width = g.values_in_keys ? g.k_dim : g.k_dim + g.v_dim;
  const double out = rows * q_heads * g.v_dim;
  PagedFixture fixture(c, KernelPath::kNative, 1);
  std::mt19937 random(2);
  const mx::array q =
      random_array(random, {static_cast<int>(rows), q_heads, g.k_dim}, mlx_dtype(g.dtype));
  const mx::array k = random_array(random, {static_cast<int>(rows), g.kv_heads, g.k_dim}, kType);
  const mx::array v = random_array(random, {static_cast<int>(rows), g.kv_heads, g.v_dim}, kType);
  const KvPages pages = kv_write(fixture.pages(), k, v, fixture.layout(), fixture.tables());
  pages.bytes.is_available() ? void() : mx::eval(pages.bytes);
  report.row(
      name, shape,
      {out, 2 * (keys * g.kv_heads * width + rows * q_heads * g.k_dim), 2 * out,
       pairs * q_heads * (g.k_dim + g.v_dim)},
      [&] { eval(paged_attention(q, pages, fixture.layout(), fixture.tables(), c.options)); });
}

void report_products(Report& report, std::mt19937& random, int rows) {
  constexpr int kOutputs = 64, kInputs = 512;
  const mx::array x = random_array(random, {rows, kInputs}, kType);
  const double n = double{kOutputs} * rows;
  const auto bound = [&](const Weight& w, int matrices) {
    return Bound{
        n, static_cast<double>(matrices) * static_cast<double>(w.bytes()) + 2.0 * kInputs * rows,
        2 * n, matrices * n * kInputs};
  };
  const std::string shape = fmt::format("{} x {} -> {}", rows, kInputs, kOutputs);
  for (const auto& [name, weight] :
       {std::pair("float16", random_dense(random, kOutputs, kInputs, kDType)),
        std::pair("affine 4-bit/64", random_affine(random, kOutputs, kInputs, 4, 64, kDType)),
        std::pair("q6_K", random_gguf(random, kOutputs, kInputs, WeightFormat::kQ6_K))}) {
    report.row("linear " + std::string(name), shape, bound(weight, 1),
               [&] { eval(linear(x, weight)); });
  }
  const Weight gate = random_affine(random, kOutputs, kInputs, 4, 64, kDType);
  const Weight up = random_affine(random, kOutputs, kInputs, 4, 64, kDType);
  report.row("gated_linear 4-bit/64", shape, bound(gate, 2), [&] {
    eval(gated_linear(x, {gate, std::nullopt}, {up, std::nullopt}, Activation::kSilu));
  });
}

void report_head_linear(Report& report, std::mt19937& random, int rows) {
  const Weight weight = random_dense(random, 4 * 64, 128, kDType);
  const mx::array x = random_array(random, {rows, 4, 128}, kType);
  const double n = 4.0 * 64 * rows;
  report.row("head_linear float16", fmt::format("{} x 4 heads, 128 -> 64", rows),
             {n, static_cast<double>(weight.bytes()) + 2.0 * 4 * 128 * rows, 2 * n, n * 128},
             [&] { eval(head_linear(x, weight)); });
}

void report_embed(Report& report, std::mt19937& random, int rows) {
  const Weight table = random_affine(random, 256, 512, 4, 64, kDType);
  const double n = 512.0 * rows;
  const mx::array tokens = mx::astype(mx::arange(rows), mx::int32);
  eval(tokens);
  report.row("embed 4-bit/64", fmt::format("{} tokens of 512", rows),
             {n, n / 2 + n / 64 * 4 + 4.0 * rows, 2 * n},
             [&] { eval(embed(table, tokens, kType)); });
}

void report_experts(Report& report, std::mt19937& random, int rows) {
  constexpr int kExperts = 8, kHidden = 128, kInner = 64, kTop = 2;
  std::vector<Weight> gates, ups, downs;
  for (int e = 0; e < kExperts; ++e) {
    gates.push_back(random_affine(random, kInner, kHidden, 4, 64, kDType));
    ups.push_back(random_affine(random, kInner, kHidden, 4, 64, kDType));
    downs.push_back(random_affine(random, kHidden, kInner, 4, 64, kDType));
  }
  const ExpertMlp mlp{.gate = {stack_of(gates), std::nullopt},
                      .up = {stack_of(ups), std::nullopt},
                      .down = {stack_of(downs), std::nullopt}};
  const mx::array x = random_array(random, {rows, kHidden}, kType);
  const mx::array logits = random_array(random, {rows, kExperts});
  const ExpertChoice choice{.experts = kExperts, .top_k = kTop};
  report.row("route_experts", fmt::format("{} x {}, top {}", rows, kExperts, kTop),
             {double{kTop} * rows, 4.0 * kExperts * rows, 8.0 * kTop * rows}, [&] {
               const Routing routing = route_experts(logits, choice);
               mx::eval(routing.ids, routing.weights);
             });
  const Routing routing = route_experts(logits, choice);
  mx::eval(routing.ids, routing.weights);
  const double used = std::min(kExperts, rows * kTop);
  const double matrices =
      static_cast<double>(gates[0].bytes()) * 2 + static_cast<double>(downs[0].bytes());
  const double n = double{kHidden} * rows;
  report.row("expert_mlp 4-bit/64",
             fmt::format("{} x {}, top {} of {}", rows, kHidden, kTop, kExperts),
             {n, used * matrices + 2 * n, 2 * n, 3.0 * kTop * rows * kHidden * kInner},
             [&] { eval(expert_mlp(x, routing, mlp)); });
}

void report_states(Report& report, std::mt19937& random, int rows) {
  constexpr int kKeyHeads = 1, kHeads = 2, kDim = 128, kChannels = 512;
  const StateGeometry g{.columns = 2,
                        .heads = kHeads,
                        .k_dim = kDim,
                        .v_dim = kDim,
                        .heads_per_page = 1,
                        .conv_rows = 3,
                        .conv_units = 1,
                        .unit_channels = kChannels,
                        .conv_dtype = kDType,
                        .conv_column = 0,
                        .first_unit = 0,
                        .units_per_page = 1};
  const int page_bytes = static_cast<int>(std::max(g.head_bytes(), g.unit_bytes()));
  const BatchLayout layout = state_layout({rows});
  {
    StateFixture fixture(g, KernelPath::kNative, page_bytes, 1);
    std::memset(const_cast<void*>(fixture.pages().bytes.data<void>()), 0,
                fixture.pages().bytes.nbytes());
    const mx::array table = fixture.table({0}, {{0, 0}});
    const GatedDeltaRows in{
        .qkv = random_array(random, {rows, (2 * kKeyHeads + kHeads) * kDim}, kType),
        .gates = random_array(random, {rows, kHeads * kDim + 2 * kHeads}, kType),
        .z_column = 0,
        .a_column = kHeads * kDim,
        .b_column = kHeads * kDim + kHeads};
    const GatedDeltaWeights weights{random_array(random, {kHeads}), random_array(random, {kHeads}),
                                    random_array(random, {kDim}, kType)};
    const double n = double{kHeads} * kDim * rows;
    const double state = 2.0 * static_cast<double>(g.head_bytes());
    report.row("gated_delta", fmt::format("{} rows, 2 heads of 128 x 128", rows),
               {n, state + 2.0 * rows * (2 * kKeyHeads + 2 * kHeads) * kDim, state + 2 * n,
                3.0 * n * kDim},
               [&] {
                 const GatedDelta made = gated_delta(fixture.pages(), in, weights,
                                                     {.key_heads = kKeyHeads}, layout, table);
                 mx::eval(made.out, made.pages.bytes);
               });
  }
  StateFixture fixture(g, KernelPath::kNative, page_bytes, 1);
  std::memset(const_cast<void*>(fixture.pages().bytes.data<void>()), 0,
              fixture.pages().bytes.nbytes());
  const mx::array table = fixture.table({0}, {{0, 0}});
  const mx::array x = random_array(random, {rows, kChannels}, kType);
  const ConvWeights weights{random_array(random, {4, kChannels}, kType)};
  const double n = double{kChannels} * rows;
  const double state = 2.0 * 3 * kChannels;
  report.row("causal_conv", fmt::format("{} x {}, 4 taps", rows, kChannels),
             {n, 2 * n + state + 2.0 * 4 * kChannels, 2 * n + state, 4 * n}, [&] {
               const Convolved made = causal_conv(fixture.pages(), x, weights, {}, layout, table);
               mx::eval(made.y, made.pages.bytes);
             });
}

void report_sampling(Report& report, std::mt19937& random, int rows) {
  constexpr int kVocab = 8192;
  const mx::array logits = random_array(random, {rows, kVocab});
  const Bound bound{static_cast<double>(rows), 4.0 * kVocab * rows, 4.0 * rows};
  const std::string shape = fmt::format("{} x {}", rows, kVocab);
  const auto all = [&](const RowSampling& row) {
    return std::vector<RowSampling>(static_cast<size_t>(rows), row);
  };
  report.row("sample, greedy", shape, bound, [&] { eval(sample(logits, all({})).tokens); });
  report.row("sample, temperature", shape, bound,
             [&] { eval(sample(logits, all({.temperature = 0.8f, .seed = 1})).tokens); });
  report.row("sample, top_k 50, top_p 0.95", shape, bound, [&] {
    eval(sample(logits, all({.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .seed = 1})).tokens);
  });
  const std::vector<TokenId> tokens(static_cast<size_t>(rows), 1);
  report.row("logprobs, 20 most likely", shape,
             {bound.outputs, 4.0 * kVocab * rows, 8.0 * 21 * rows},
             [&] { eval(logprobs_of(logits, tokens, 20).values); });
}

void run() {
  std::mt19937 random(1);
  Report report;
  const PageGeometry plain{.kv_heads = 2, .k_dim = 128, .v_dim = 128, .dtype = kDType};
  const PageGeometry latent{
      .kv_heads = 1, .k_dim = 576, .v_dim = 512, .dtype = kDType, .values_in_keys = true};
  report_attention(report, {{500, 1}, {130, 1}}, 16, plain, "paged_attention, decode",
                   "2 rows at 501 and 131, 16/2 heads of 128");
  report_attention(report, {{0, 64}}, 16, plain, "paged_attention, prefill",
                   "64 rows from 0, 16/2 heads of 128");
  report_attention(report, {{192, 64}}, 16, plain, "paged_attention, chunk",
                   "64 rows from 192, 16/2 heads of 128");
  report_attention(report, {{500, 1}}, 16, latent, "paged_attention, latent decode",
                   "1 row at 501, 16 heads of 576/512");
  for (int rows : {1, 64}) {
    report_products(report, random, rows);
    report_head_linear(report, random, rows);
    report_embed(report, random, rows);
    report_experts(report, random, rows);
    report_qkv(report, random, rows);
    report_latent_write(report, rows);
    report_rope(report, random, rows);
    report_place_tokens(report, rows);
    report_states(report, random, rows);
    report_rows(report, random, rows);
  }
  report_sampling(report, random, 1);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "costs") octavo::run();
  octavo::print_cost_report();
}
