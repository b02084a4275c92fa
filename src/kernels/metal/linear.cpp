#include "kernels/metal/linear.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/metal/activation.h"
#include "kernels/metal/linear_params.h"
#include "kernels/metal/weights.h"

namespace octavo::metal {
namespace {

// The type in which x and the weights are multiplied: the type of x, to which decoded weights are
// rounded. Dense weights of another type use float, which represents both exactly.
DType product_type(DType x, const PackedLayout& layout) {
  return layout.bits != 0 || layout.dtype == x ? x : DType::kFloat32;
}

// Adjacent layers of one format, and the first output column.
struct LayerRun {
  std::span<const LinearLayer> layers;
  int out_first = 0;
};

std::vector<LayerRun> runs_of(std::span<const LinearLayer> layers) {
  std::vector<LayerRun> runs;
  int out_first = 0;
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && have_one_format(layers[begin].layout, layers[end].layout)) ++end;
    runs.push_back({layers.subspan(begin, end - begin), out_first});
    for (; begin < end; ++begin) out_first += static_cast<int>(layers[begin].layout.rows);
  }
  return runs;
}

// Differences between the launches of one call: a gated call may need two.
struct Around {
  int gate = kNoGate;
  std::optional<mx::array> up = {};
  std::optional<mx::array> residual = {};
};

LinearParams params_of(const LinearCall& call, const LayerRun& run, const mx::array& out) {
  const PackedLayout& layout = run.layers[0].layout;
  // With one head, all strips of all parts read x from its first column.
  const int32_t strips_per_head = call.heads == 1
                                      ? std::numeric_limits<int32_t>::max()
                                      : static_cast<int32_t>(layout.strips()) / call.heads;
  const auto head_outputs = static_cast<int32_t>(layout.rows) / call.heads;
  const int32_t x_head = call.x_head > 0 ? call.x_head : static_cast<int32_t>(layout.cols);
  const int32_t out_head = call.out_head > 0 ? call.out_head : head_outputs;
  return {
      .rows = call.rows,
      .cols = static_cast<int32_t>(layout.cols),
      .padded_cols = static_cast<int32_t>(layout.padded_cols),
      .strip_bytes = static_cast<int32_t>(layout.strip_bytes()),
      .x_stride = x_head * call.heads,
      .strips_per_head = strips_per_head,
      .x_head_stride = x_head,
      .out_head_gap = call.heads == 1 ? 0 : out_head - head_outputs,
      .out_stride = out.shape(-1) * call.heads,
      .part_count = static_cast<int32_t>(run.layers.size()),
      .scale = call.scale,
      .soft_cap = call.soft_cap,
      .parts = {},
  };
}

// Fills in the parts; returns the total number of strip groups.
int add_parts(const LayerRun& run, int strips_of_group, LinearParams& params) {
  int groups = 0, out_first = run.out_first;
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const LinearLayer& layer = run.layers[i];
    const auto outputs = static_cast<int>(layer.layout.rows);
    params.parts[i] = {groups, outputs, out_first, layer.bias ? 1 : 0};
    groups += (static_cast<int>(layer.layout.strips()) + strips_of_group - 1) / strips_of_group;
    out_first += outputs;
  }
  return groups;
}

// Whether two strips of `layout` fit into threadgroup memory.
bool fits_two_strips(DType x, const PackedLayout& layout) {
  return product_type(x, layout) != DType::kFloat32;
}

// Two strips share their reads of x. This pays off for gate and up, which are needed together, and
// for many rows; with few rows, more threadgroups are faster than larger ones.
int strips_of_group(const LinearCall& call, const LayerRun& run, int gate, int tile_rows) {
  if (gate == kGateAndUp) return 2;
  const bool is_even = run.layers[0].layout.strips() / call.heads % 2 == 0;
  if (call.heads > 1 && !is_even) return 1;  // the two strips would read different columns
  return tile_rows > 8 && fits_two_strips(dtype_of(call.x), run.layers[0].layout) ? 2 : 1;
}

void launch_run(const LinearCall& call, const LayerRun& run, const Around& around,
                const mx::array& out, Encoder& encoder) {
  const int tile_rows = call.experts ? call.experts->tile_rows : call.rows <= 8 ? 8 : kManyRows;
  const int tiles =
      call.experts ? call.experts->most_tiles : (call.rows + tile_rows - 1) / tile_rows;
  const int strips = strips_of_group(call, run, around.gate, tile_rows);
  LinearParams params = params_of(call, run, out);
  int groups = add_parts(run, strips, params);
  if (around.gate == kGateAndUp) {
    groups = static_cast<int>(run.layers[0].layout.strips());
    params.part_count = 1;
  }
  const auto layer = [&](size_t i) -> const LinearLayer& {
    return run.layers[i < run.layers.size() ? i : 0];
  };
  const auto biased =
      std::ranges::find_if(run.layers, [](const auto& l) { return l.bias.has_value(); });
  const mx::array* any_bias = biased != run.layers.end() ? &*biased->bias : nullptr;
  const bool has_list = call.experts && call.experts->list;
  const DType dtype = dtype_of(call.x);

  Launch launch("linear_rows", {dtype, product_type(dtype, run.layers[0].layout), dtype_of(out),
                                any_bias != nullptr ? dtype_of(*any_bias) : DType::kFloat32,
                                tile_rows / 8, strips});
  set_format(launch, run.layers[0].layout);
  launch.constant("kIsListed", has_list)
      .constant("kGate", around.gate)
      .constant("kActivation", shader_value(call.activation))
      .constant("kHasBias", any_bias != nullptr)
      .constant("kHasResidual", around.residual.has_value())
      .constant("kHasTiles", call.experts.has_value())
      .input("x", call.x);
  constexpr std::array kWeights = {"weight0", "weight1", "weight2", "weight3"};
  constexpr std::array kBiases = {"bias0", "bias1", "bias2", "bias3"};
  for (size_t i = 0; i < kMostJoined; ++i) launch.input(kWeights[i], layer(i).weight);
  for (size_t i = 0; i < kMostJoined; ++i)
    launch.optional_input(kBiases[i], layer(i).bias ? &*layer(i).bias : any_bias);
  launch.optional_input("residual", around.residual)
      .optional_input("up", around.up)
      .optional_input("tiles", call.experts ? &call.experts->tiles : nullptr)
      .optional_input("list", has_list ? &*call.experts->list : nullptr)
      .output("out", out)
      .bytes("params", params)
      .grid({static_cast<uint32_t>(groups), static_cast<uint32_t>(tiles)}, {kKParts * 32});
  encoder.run(launch);
}

}  // namespace

void linear(const LinearCall& call, Encoder& encoder) {
  OCTAVO_CHECK(!call.layers.empty() && call.layers.size() <= kMostJoined);
  const mx::array& out = call.out;
  if (out.size() == 0) return;
  const std::vector<LayerRun> runs = runs_of(call.layers);
  if (!call.is_gated) {
    for (const LayerRun& run : runs)
      launch_run(call, run, {.residual = call.residual}, out, encoder);
    return;
  }
  if (runs.size() == 1 && fits_two_strips(dtype_of(call.x), call.layers[0].layout)) {
    launch_run(call, runs[0], {.gate = kGateAndUp, .residual = call.residual}, out, encoder);
    return;
  }
  const mx::array up = encoder.temporary(out.shape(), mx::float32);
  const std::span layers(call.layers);
  launch_run(call, {layers.subspan(1)}, {}, up, encoder);
  launch_run(call, {layers.first(1)}, {.gate = kUpGiven, .up = up, .residual = call.residual}, out,
             encoder);
}

}  // namespace octavo::metal
