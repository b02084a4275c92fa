#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <vector>

#include "bench/cases.h"
#include "kernels/causal_conv.h"
#include "kernels/gated_delta.h"
#include "kernels/runtime/device_buffer.h"

namespace octavo::bench {
namespace {

// A layer of Qwen3.5-0.8B.
constexpr int kHeads = 16;
constexpr int kDim = 128;
constexpr int kChannels = 3 * kHeads * kDim;
constexpr int kWidth = kChannels + kHeads * kDim + 2 * kHeads;  // joined projection
constexpr int kUnitChannels = 128;
constexpr int kUnitsPerPage = 64;

const StateGeometry kGeometry = {.columns = kHeads + 1,
                                 .heads = kHeads,
                                 .k_dim = kDim,
                                 .v_dim = kDim,
                                 .conv_rows = 3,
                                 .conv_units = kChannels / kUnitChannels,
                                 .unit_channels = kUnitChannels,
                                 .conv_dtype = DType::kBFloat16,
                                 .conv_column = kHeads,
                                 .units_per_page = kUnitsPerPage};

struct Shape {
  const char* kind;
  int sequences;
  int rows;  // of each sequence
};

mx::array ints(const std::vector<int>& values, const mx::Shape& shape) {
  return mx::array(values.begin(), shape, mx::int32);
}

BatchLayout layout_of(const Shape& shape) {
  std::vector<int> positions, starts = {0};
  for (int s = 0; s < shape.sequences; ++s) {
    for (int i = 0; i < shape.rows; ++i) positions.push_back(i);
    starts.push_back(starts.back() + shape.rows);
  }
  const std::vector<int> contexts(static_cast<size_t>(shape.sequences), shape.rows);
  return {ints(positions, {starts.back()}), ints(starts, {shape.sequences + 1}),
          ints(contexts, {shape.sequences})};
}

// States are read and written in place.
mx::array table_of(const Shape& shape) {
  std::vector<int> ids;
  for (int s = 0; s < shape.sequences; ++s) {
    for (int half = 0; half < 2; ++half)
      for (int column = 0; column < kGeometry.columns; ++column)
        ids.push_back(s * kGeometry.columns + column);
  }
  return ints(ids, {shape.sequences, 2 * kGeometry.columns});
}

// States of enough layers to exceed every cache, and the rows of a batch.
class StateLayers {
 public:
  StateLayers(const Shape& shape, int layers)
      : layout_(layout_of(shape)),
        table_(table_of(shape)),
        joined_(spread_array({shape.sequences * shape.rows, kWidth}, mx::bfloat16)),
        qkv_(spread_array({shape.sequences * shape.rows, kChannels}, mx::bfloat16)),
        conv_{spread_array({kGeometry.conv_rows + 1, kChannels}, mx::bfloat16)},
        weights_{mx::full({kHeads}, -2.0f), mx::zeros({kHeads}),
                 spread_array({kDim}, mx::bfloat16)} {
    const auto page_bytes = static_cast<int>(kGeometry.head_bytes());
    for (int i = 0; i < layers; ++i) {
      layers_.push_back(
          {make_device_buffer({shape.sequences * kGeometry.columns, page_bytes}, mx::uint8),
           kGeometry});
      std::fill_n(layers_.back().bytes.data<float>(), layers_.back().bytes.nbytes() / 4, 0.01f);
    }
    mx::eval(weights_.a_log, weights_.dt_bias);
  }

  // The next layer's states.
  mx::array delta(KernelPath path) {
    StatePages pages = layers_[next_++ % layers_.size()];
    pages.path = path;
    const int b_column = kChannels + kHeads * kDim;
    return gated_delta(pages,
                       {.qkv = qkv_,
                        .gates = joined_,
                        .z_column = kChannels,
                        .a_column = b_column + kHeads,
                        .b_column = b_column},
                       weights_, {.key_heads = kHeads}, layout_, table_)
        .out;
  }
  mx::array conv(KernelPath path) {
    StatePages pages = layers_[next_++ % layers_.size()];
    pages.path = path;
    return causal_conv(pages, joined_, conv_, {.activation = ConvActivation::kSilu}, layout_,
                       table_)
        .y;
  }

 private:
  BatchLayout layout_;
  mx::array table_;
  mx::array joined_, qkv_;
  ConvWeights conv_;
  GatedDeltaWeights weights_;
  std::vector<StatePages> layers_;
  size_t next_ = 0;
};

using Operation = mx::array (StateLayers::*)(KernelPath);

void bench_operation(CaseRunner& runner, const CaseName& name, const Shape& shape, const Work& work,
                     Operation operation) {
  if (!runner.wants(name)) return;
  const double state_bytes = static_cast<double>(shape.sequences) * kHeads * kDim * kDim * 4;
  auto layers = std::make_shared<StateLayers>(shape, runner.cold_copies(state_bytes));
  const auto run = [layers, operation](KernelPath path) {
    return [layers, operation, path](int calls) {
      std::vector<mx::array> outs;
      for (int i = 0; i < calls; ++i) outs.push_back((*layers.*operation)(path));
      mx::eval(outs);
    };
  };
  Case c{.name = name,
         .work = work,
         .peak = &probe_of(cpu::active_isa()).fp32,
         .ours = run(KernelPath::kNative)};
  if (runner.mlx()) c.mlx = run(KernelPath::kReference);
  runner.run(c);
}

// States are read and written. Per element of a state: the decay, and a product and a sum each for
// S k, for the update and for S q.
void bench_delta(CaseRunner& runner, const Shape& shape) {
  const double tokens = static_cast<double>(shape.sequences) * shape.rows;
  const double state = 1.0 * kHeads * kDim * kDim;
  const Work work{.bytes = 2 * 4 * shape.sequences * state + 2 * tokens * (kChannels + kWidth),
                  .flops = 7 * tokens * state};
  bench_operation(runner,
                  {"gated_delta",
                   fmt::format("{} {}x{} {}x{}x{}", shape.kind, shape.sequences, shape.rows, kHeads,
                               kDim, kDim),
                   "bfloat16"},
                  shape, work, &StateLayers::delta);
}

void bench_conv(CaseRunner& runner, const Shape& shape) {
  const double tokens = static_cast<double>(shape.sequences) * shape.rows;
  const double state = static_cast<double>(shape.sequences) * 2 * 3 * kChannels;
  const Work work{.bytes = 2 * state + 2 * 2 * tokens * kChannels, .flops = 8 * tokens * kChannels};
  bench_operation(runner,
                  {"causal_conv",
                   fmt::format("{} {}x{} {}x4", shape.kind, shape.sequences, shape.rows, kChannels),
                   "bfloat16"},
                  shape, work, &StateLayers::conv);
}

}  // namespace

void bench_states(CaseRunner& runner) {
  const Shape decode{"decode", runner.quick() ? 2 : 32, 1};
  const Shape prefill{"prefill", 1, runner.quick() ? 16 : 512};
  for (const Shape& shape : {decode, prefill}) {
    bench_delta(runner, shape);
    bench_conv(runner, shape);
  }
}

}  // namespace octavo::bench
