#include <fmt/format.h>
#include <mlx/fast.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "bench/cases.h"
#include "kernels/paged_attention.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/testing/kv_write.h"

namespace octavo::bench {
namespace {

struct Heads {
  int q;
  int kv;
  int k_dim;
  int v_dim;
  bool values_in_keys = false;

  AttentionOptions options() const { return {.scale = 1 / std::sqrt(static_cast<float>(k_dim))}; }
  // Cache bytes per token.
  int token_bytes() const { return 2 * kv * (values_in_keys ? k_dim : k_dim + v_dim); }
  std::string text() const {
    return values_in_keys ? fmt::format("latent {}/{}x{}", q, k_dim, v_dim)
                          : fmt::format("{}/{}x{}", q, kv, k_dim);
  }
};
constexpr Heads kGrouped{.q = 16, .kv = 8, .k_dim = 128, .v_dim = 128};
// DeepSeek-V2-Lite and V3.
constexpr Heads kLatent{.q = 16, .kv = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true};
constexpr Heads kManyLatent{.q = 128, .kv = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true};

struct Shape {
  int sequences;
  int context;  // tokens of each sequence
  int rows;     // last tokens of each sequence, in the batch
  Heads heads = kGrouped;
};

mx::array ints(const std::vector<int>& values, const mx::Shape& shape) {
  return mx::array(values.begin(), shape, mx::int32);
}

// The last `rows` tokens of every sequence.
BatchLayout layout_of(const Shape& shape, int rows) {
  std::vector<int> positions, starts = {0};
  for (int s = 0; s < shape.sequences; ++s) {
    for (int i = 0; i < rows; ++i) positions.push_back(shape.context - rows + i);
    starts.push_back(starts.back() + rows);
  }
  const std::vector<int> contexts(static_cast<size_t>(shape.sequences), shape.context);
  return {ints(positions, {shape.sequences * rows}), ints(starts, {shape.sequences + 1}),
          ints(contexts, {shape.sequences})};
}

// Pages of enough layers to exceed every cache, filled up to the context, in shuffled order as
// after long use.
class PagedLayers {
 public:
  PagedLayers(const Shape& shape, const mx::array& k, const mx::array& v, int layers)
      : options_(shape.heads.options()),
        layout_(layout_of(shape, shape.rows)),
        tables_(make_tables(shape)) {
    const PageGeometry geometry{.block_tokens = kBlockTokens,
                                .kv_heads = shape.heads.kv,
                                .k_dim = shape.heads.k_dim,
                                .v_dim = shape.heads.v_dim,
                                .dtype = DType::kBFloat16,
                                .values_in_keys = shape.heads.values_in_keys};
    const BatchLayout whole = layout_of(shape, shape.context);
    for (int i = 0; i < layers; ++i) {
      KvPages pages{make_device_buffer(
                        {static_cast<int>(tables_.size()), static_cast<int>(geometry.page_bytes())},
                        mx::uint8),
                    geometry};
      layers_.push_back(kv_write(pages, k, v, whole, tables_));
      mx::eval(layers_.back().bytes);
    }
  }

  mx::array attend(const mx::array& q) {
    const KvPages& layer = layers_[next_++ % layers_.size()];
    return paged_attention(q, layer, layout_, tables_, options_);
  }

 private:
  static constexpr int kBlockTokens = 32;

  static mx::array make_tables(const Shape& shape) {
    const int columns = (shape.context + kBlockTokens - 1) / kBlockTokens;
    std::vector<int> ids(static_cast<size_t>(columns * shape.sequences));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
    return ints(ids, {shape.sequences, columns});
  }

  AttentionOptions options_;
  BatchLayout layout_;
  mx::array tables_;
  std::vector<KvPages> layers_;
  size_t next_ = 0;
};

// MLX's attention, one sequence at a time, over contiguous K and V of one layer. It is far from
// memory-bound, so cold copies are not needed.
Contender mlx_attention(const Shape& shape, const mx::array& q, const mx::array& k,
                        const mx::array& v) {
  // [sequences * rows, heads, dim] to one [1, heads, rows, dim] per sequence
  auto split = [&](const mx::array& all, int heads, int rows) {
    const mx::array by_head =
        mx::transpose(mx::reshape(all, {shape.sequences, rows, heads, all.shape(2)}), {0, 2, 1, 3});
    std::vector<mx::array> out = mx::split(mx::contiguous(by_head), shape.sequences, 0);
    for (auto& part : out) part = mx::contiguous(part);
    mx::eval(out);
    return out;
  };
  const Heads& heads = shape.heads;
  return [qs = split(q, heads.q, shape.rows), ks = split(k, heads.kv, shape.context),
          vs = split(v, heads.kv, shape.context), causal = shape.rows > 1,
          scale = heads.options().scale](int calls) {
    std::vector<mx::array> outs;
    for (int i = 0; i < calls; ++i) {
      for (size_t s = 0; s < qs.size(); ++s) {
        outs.push_back(mx::fast::scaled_dot_product_attention(qs[s], ks[s], vs[s], scale,
                                                              causal ? "causal" : ""));
      }
    }
    mx::eval(outs);
  };
}

// Reads K and V of every token once; two products of each row with its visible tokens.
Work work_of(const Shape& shape) {
  const double seen = shape.rows * (shape.context - (shape.rows - 1) / 2.0);
  const Heads& heads = shape.heads;
  return {.bytes = 1.0 * shape.sequences * shape.context * heads.token_bytes(),
          .flops = 2.0 * shape.sequences * heads.q * (heads.k_dim + heads.v_dim) * seen};
}

void bench_shape(CaseRunner& runner, const char* kind, const Shape& shape) {
  const CaseName name{
      "paged_attention",
      fmt::format("{} {}x{} {}", kind, shape.sequences, shape.context, shape.heads.text()),
      "bfloat16"};
  if (!runner.wants(name)) return;
  const Work work = work_of(shape);
  const int tokens = shape.sequences * shape.context;
  const Heads& heads = shape.heads;
  const mx::array k = spread_array({tokens, heads.kv, heads.k_dim}, mx::bfloat16);
  const mx::array v = spread_array({tokens, heads.kv, heads.v_dim}, mx::bfloat16);
  const mx::array q =
      spread_array({shape.sequences * shape.rows, heads.q, heads.k_dim}, mx::bfloat16);
  auto layers = std::make_shared<PagedLayers>(shape, k, v, runner.cold_copies(work.bytes));
  Case c{.name = name,
         .work = work,
         .peak = &bf16_peak_of(cpu::active_isa()),
         .ours = [layers, q](int calls) {
           std::vector<mx::array> outs;
           for (int i = 0; i < calls; ++i) outs.push_back(layers->attend(q));
           mx::eval(outs);
         }};
  if (runner.mlx()) c.mlx = mlx_attention(shape, q, k, v);
  runner.run(c);
}

}  // namespace

void bench_attention(CaseRunner& runner) {
  if (runner.quick()) {
    bench_shape(runner, "decode", {.sequences = 4, .context = 128, .rows = 1});
    bench_shape(runner, "prefill", {.sequences = 1, .context = 128, .rows = 128});
  } else {
    bench_shape(runner, "decode", {.sequences = 32, .context = 1024, .rows = 1});
    bench_shape(runner, "decode", {.sequences = 128, .context = 160, .rows = 1});
    bench_shape(runner, "prefill", {.sequences = 1, .context = 4096, .rows = 4096});
    for (const Heads& heads : {kLatent, kManyLatent}) {
      bench_shape(runner, "decode", {.sequences = 32, .context = 1024, .rows = 1, .heads = heads});
      bench_shape(runner, "decode", {.sequences = 1, .context = 4096, .rows = 1, .heads = heads});
    }
    bench_shape(runner, "prefill",
                {.sequences = 1, .context = 2048, .rows = 2048, .heads = kLatent});
  }
}

}  // namespace octavo::bench
