#include "kernels/metal/linear.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/metal/activation.h"
#include "kernels/metal/gpu_cores.h"
#include "kernels/metal/linear_params.h"
#include "kernels/metal/weights.h"

namespace octavo::metal {
namespace {

std::atomic<bool> vector_products = true;

// The type in which x and the weights are multiplied: the type of x, to which decoded weights are
// rounded. Dense weights of another type use float, which represents both exactly.
DType product_type(DType x, const PackedLayout& layout) {
  return layout.bits != 0 || layout.dtype == x ? x : DType::kFloat32;
}

// Adjacent layers of one format.
struct LayerRun {
  std::span<const LinearLayer> layers;
  int out_first = 0;  // column of the first output
  size_t first = 0;   // of the layers, in the call
};

std::vector<LayerRun> runs_of(std::span<const LinearLayer> layers) {
  std::vector<LayerRun> runs;
  int out_first = 0;
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && have_one_format(layers[begin].layout, layers[end].layout)) ++end;
    runs.push_back({layers.subspan(begin, end - begin), out_first, begin});
    for (; begin < end; ++begin) out_first += static_cast<int>(layers[begin].layout.rows);
  }
  return runs;
}

// Differences between the launches of one call: a gated call may need two.
struct Around {
  int gate = kNoGate;
  std::optional<mx::array> up = {};
  std::optional<mx::array> residual = {};
  const LoraSums* lora = nullptr;
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
      .part_count = 0,
      .group_strips = 0,
      .scale = call.scale,
      .soft_cap = call.soft_cap,
      .parts = {},
      .lora_stride = 0,
      .lora_firsts = {},
  };
}

// Fills in the parts; returns the total number of strip groups.
int add_parts(std::span<const LinearLayer> layers, int out_first, LinearParams& params) {
  params.part_count = static_cast<int32_t>(layers.size());
  int groups = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto outputs = static_cast<int>(layers[i].layout.rows);
    params.parts[i] = {groups, outputs, out_first, layers[i].bias ? 1 : 0};
    groups += (static_cast<int>(layers[i].layout.strips()) + params.group_strips - 1) /
              params.group_strips;
    out_first += outputs;
  }
  return groups;
}

// Products of 16-bit rows with quantised weights are sums of whole numbers.
bool is_integer(DType x, const PackedLayout& layout) {
  return layout.bits != 0 && x != DType::kFloat32;
}

int groups_of_unit(const PackedLayout& layout) {
  return layout.group_size < kUnitCols ? kUnitCols / layout.group_size : 1;
}

// Whether a launch can take the strips of a gate and of up together: both are in threadgroup memory or,
// of integer products, in registers.
bool fits_pair(DType x, const PackedLayout& layout) {
  if (is_integer(x, layout)) return groups_of_unit(layout) <= 2;
  return product_type(x, layout) != DType::kFloat32;
}

enum class Product : uint8_t { kDecoded, kDenseMatrix, kIntegerVector, kIntegerMatrix };

// A kernel and its tile. The bits of a result do not depend on the tile.
struct Tiling {
  Product product = Product::kDecoded;
  int rows = 0;
  int strips = 1;  // per threadgroup; of a pair, of both layers
};

// Strips of a threadgroup share their reads of x, but make fewer threadgroups.
int strips_of_tile(const Tiling& tiling, const LayerRun& run, DType x, bool is_pair) {
  const PackedLayout& layout = run.layers[0].layout;
  if (tiling.product == Product::kIntegerMatrix) return kKParts;
  if (tiling.product == Product::kDenseMatrix) return kDenseRows / kStripRows;
  if (tiling.product == Product::kDecoded) {
    if (is_pair) return 2;
    return tiling.rows > 8 && product_type(x, layout) != DType::kFloat32 ? 2 : 1;
  }
  // They also share the rounding of x, which matters with several rows. A lane has a sum per row and
  // group of two strips; four strips need the rows of a slab at once.
  const int most_strips = groups_of_unit(layout) == 1 ? (tiling.rows >= 4 ? 4 : 2)
                                                      : (groups_of_unit(layout) == 2 ? 2 : 1);
  const int64_t enough_groups = tiling.rows >= 4 ? 32 : 512;
  int64_t all = 0;
  for (const LinearLayer& layer : run.layers) all += layer.layout.strips();
  int strips = is_pair ? 2 : 1;
  while (2 * strips <= most_strips && all >= 2 * strips * enough_groups) strips *= 2;
  return strips;
}

// Whether tiles of 64 x 64 are full enough, and enough to keep every core busy.
bool fills_dense_tiles(const LinearCall& call, const LayerRun& run) {
  constexpr int kFewestRows = 256;   // so that at most a fifth of the rows are padding
  constexpr int kGroupsPerCore = 2;  // of four simdgroups
  const PackedLayout& layout = run.layers[0].layout;
  const DType x = dtype_of(call.x);
  if (call.experts || call.heads > 1 || call.rows < kFewestRows || x == DType::kFloat32 ||
      layout.bits != 0 || layout.dtype != x || layout.cols % 4 != 0)
    return false;
  int64_t outputs = 0;
  for (const LinearLayer& layer : run.layers) outputs += layer.layout.rows;
  const int64_t tiles = (call.rows + kDenseRows - 1) / kDenseRows;
  return tiles * (outputs / kDenseRows) >= int64_t{kGroupsPerCore} * gpu_cores();
}

Tiling tiling_of(const LinearCall& call, const LayerRun& run, bool is_pair) {
  const PackedLayout& layout = run.layers[0].layout;
  const DType x = dtype_of(call.x);
  const int rows = call.experts ? call.experts->tile_rows : call.rows;
  Tiling tiling;
  if (!is_integer(x, layout)) {
    tiling.rows = rows <= 8 ? 8 : kManyRows;
    if (fills_dense_tiles(call, run)) tiling = {Product::kDenseMatrix, kDenseRows};
  } else if (rows <= 8 && has_vector_products()) {
    tiling = {Product::kIntegerVector, 1};
    while (tiling.rows < rows) tiling.rows *= 2;
  } else {
    tiling = {Product::kIntegerMatrix, kManyRows};
  }
  tiling.strips = strips_of_tile(tiling, run, x, is_pair);
  // Strips of different heads read different columns.
  while (call.heads > 1 && layout.strips() / call.heads % tiling.strips != 0) tiling.strips /= 2;
  return tiling;
}

Launch launch_of(const Tiling& tiling, const PackedLayout& layout, DType x, DType out, DType bias) {
  switch (tiling.product) {
    case Product::kIntegerVector:
      return Launch("integer_vector",
                    {x, out, bias, tiling.rows, groups_of_unit(layout), tiling.strips});
    case Product::kIntegerMatrix:
      return Launch("integer_matrix", {x, out, bias, groups_of_unit(layout)});
    case Product::kDenseMatrix:
      return Launch("dense_matrix", {x, out, bias});
    case Product::kDecoded:
      break;
  }
  return Launch("linear_rows",
                {x, product_type(x, layout), out, bias, tiling.rows / 8, tiling.strips});
}

void launch_run(const LinearCall& call, const LayerRun& run, const Around& around,
                const mx::array& out, Encoder& encoder) {
  const bool is_pair = around.gate == kGateAndUp;
  const Tiling tiling = tiling_of(call, run, is_pair);
  const int tiles =
      call.experts ? call.experts->most_tiles : (call.rows + tiling.rows - 1) / tiling.rows;
  LinearParams params = params_of(call, run, out);
  params.group_strips = is_pair ? tiling.strips / 2 : tiling.strips;
  const int groups =
      add_parts(run.layers.first(is_pair ? 1 : run.layers.size()), run.out_first, params);
  if (around.lora != nullptr) {
    params.lora_stride = around.lora->sums.shape(1);
    for (size_t i = 0; i < run.layers.size(); ++i)
      params.lora_firsts[i] = around.lora->firsts[run.first + i];
  }
  const auto layer = [&](size_t i) -> const LinearLayer& {
    return run.layers[i < run.layers.size() ? i : 0];
  };
  const auto biased =
      std::ranges::find_if(run.layers, [](const auto& l) { return l.bias.has_value(); });
  const mx::array* any_bias = biased != run.layers.end() ? &*biased->bias : nullptr;
  const bool has_list = call.experts && call.experts->list;
  const DType dtype = dtype_of(call.x);

  Launch launch = launch_of(tiling, run.layers[0].layout, dtype, dtype_of(out),
                            any_bias != nullptr ? dtype_of(*any_bias) : DType::kFloat32);
  set_format(launch, run.layers[0].layout);
  launch.constant("kIsListed", has_list)
      .constant("kGate", around.gate)
      .constant("kActivation", shader_value(call.activation))
      .constant("kHasBias", any_bias != nullptr)
      .constant("kHasResidual", around.residual.has_value())
      .constant("kHasTiles", call.experts.has_value())
      .constant("kHasLora", around.lora != nullptr)
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
      .optional_input("lora", around.lora != nullptr ? &around.lora->sums : nullptr)
      .optional_input("lora_places", around.lora != nullptr ? &around.lora->places : nullptr)
      .grid({static_cast<uint32_t>(groups), static_cast<uint32_t>(tiles)}, {kKParts * 32});
  encoder.run(launch);
}

}  // namespace

bool has_vector_products() { return vector_products; }
void set_vector_products(bool are_used) { vector_products = are_used; }

void linear(const LinearCall& call, Encoder& encoder) {
  OCTAVO_CHECK(!call.layers.empty() && call.layers.size() <= kMostJoined);
  const mx::array& out = call.out;
  if (out.size() == 0) return;
  std::optional<LoraSums> sums;
  if (call.lora) {
    OCTAVO_CHECK(!call.experts && call.heads == 1 &&
                 call.lora->layers.size() == call.layers.size());
    sums = lora_sums(call.x, *call.lora, encoder);
  }
  const LoraSums* lora = sums ? &*sums : nullptr;
  const std::vector<LayerRun> runs = runs_of(call.layers);
  if (!call.is_gated) {
    for (const LayerRun& run : runs)
      launch_run(call, run, {.residual = call.residual, .lora = lora}, out, encoder);
    return;
  }
  if (runs.size() == 1 && fits_pair(dtype_of(call.x), call.layers[0].layout)) {
    launch_run(call, runs[0], {.gate = kGateAndUp, .residual = call.residual, .lora = lora}, out,
               encoder);
    return;
  }
  const mx::array up = encoder.temporary(out.shape(), mx::float32);
  const std::span layers(call.layers);
  launch_run(call, {.layers = layers.subspan(1), .first = 1}, {.lora = lora}, up, encoder);
  launch_run(call, {layers.first(1)},
             {.gate = kUpGiven, .up = up, .residual = call.residual, .lora = lora}, out, encoder);
}

}  // namespace octavo::metal
