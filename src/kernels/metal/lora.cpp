#include "kernels/metal/lora.h"

#include "base/error.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/lora_params.h"

namespace octavo::metal {
namespace {

static_assert(kLoraHeader == kLoraHeaderBytes);

// Columns of one kind of result: where each layer begins, and their number.
struct Columns {
  std::vector<int> firsts;  // -1: the layer has none
  int count = 0;
};

template <typename Width>
Columns columns_of(const LoraCall& call, Width width) {
  Columns columns;
  for (const std::optional<LoraLayer>& layer : call.layers) {
    columns.firsts.push_back(layer ? columns.count : -1);
    if (layer) columns.count += width(layer->shape);
  }
  return columns;
}

// A x of every layer, [rows with an adapter, columns]; zeros past a slot's rank.
mx::array inner_products(const mx::array& x, const LoraCall& call, const LoraTables::Arrays& tables,
                         int columns, Encoder& encoder) {
  LinearCall products{
      .x = x,
      .experts = ExpertTiles{.tiles = tables.tiles,
                             .list = tables.order,
                             .most_tiles = tables.tile_count,
                             .tile_rows = tables.tile_rows},
      .out = encoder.temporary({tables.order.shape(0), columns}, mx::float32),
  };
  for (const std::optional<LoraLayer>& layer : call.layers)
    if (layer)
      products.layers.push_back({layer->shape.a_layout(layer->shape.max_rank), layer->a, {}});
  linear(products, encoder);
  return products.out;
}

}  // namespace

LoraSums lora_sums(const mx::array& x, const LoraCall& call, Encoder& encoder) {
  OCTAVO_CHECK(!call.plan->order.empty());
  const LoraTables::Arrays& tables = call.tables->find(*call.plan, encoder);
  const Columns ranks = columns_of(call, [](const LoraShape& shape) { return shape.max_rank; });
  const Columns outputs = columns_of(call, [](const LoraShape& shape) { return shape.outputs; });
  const mx::array inner = inner_products(x, call, tables, ranks.count, encoder);
  const mx::array sums = encoder.temporary({tables.order.shape(0), outputs.count}, mx::float32);
  for (size_t i = 0; i < call.layers.size(); ++i) {
    if (!call.layers[i]) continue;
    const LoraLayer& layer = *call.layers[i];
    const auto strips = static_cast<uint32_t>((layer.shape.outputs + kUnitRows - 1) / kUnitRows);
    Launch launch("lora_expand", {layer.shape.dtype});
    launch.input("inner", inner)
        .input("b", layer.b)
        .input("tiles", tables.tiles)
        .output("out", sums)
        .bytes("params", LoraParams{.outputs = layer.shape.outputs,
                                    .slot_bytes = static_cast<int32_t>(layer.shape.b_bytes()),
                                    .inner_stride = ranks.count,
                                    .inner_first = ranks.firsts[i],
                                    .out_stride = outputs.count,
                                    .out_first = outputs.firsts[i]})
        .grid({strips, static_cast<uint32_t>(tables.tile_count)}, {kLoraThreads});
    encoder.run(launch);
  }
  return {sums, tables.places, outputs.firsts};
}

}  // namespace octavo::metal
