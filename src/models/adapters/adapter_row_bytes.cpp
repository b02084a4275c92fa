#include "models/adapters/adapter_row_bytes.h"

#include <algorithm>

#include "models/model_description.h"

namespace octavo {

AdapterRowBytes adapter_row_bytes(const AdapterTargets& targets, int max_rank) {
  const auto bytes_of = [&](int projection) {
    if (projection < 0) return uint64_t{0};
    const auto outputs = targets.projections[static_cast<size_t>(projection)].outputs;
    return (static_cast<uint64_t>(max_rank) + static_cast<uint64_t>(outputs)) * sizeof(float);
  };
  // A row's place and index, and a tile of its own (metal/lora_tables.h).
  constexpr uint64_t kTableWords = 2 + 3;
  AdapterRowBytes row{.head = bytes_of(targets.head), .tables = kTableWords * sizeof(int32_t)};
  for (const LayerTargets& layer : targets.layers) {
    // Metal does not serve adapters of experts.
    uint64_t bytes = 0;
    for (const int projection :
         {layer.output, layer.gate, layer.up, layer.down, layer.router, layer.shared_gate})
      bytes += bytes_of(projection);
    for (const int projection : layer.qkv) bytes += bytes_of(projection);
    row.widest_layer = std::max(row.widest_layer, bytes);
    row.all_layers += bytes;
  }
  return row;
}

uint64_t adapter_step_bytes(const AdapterRowBytes& row, int tokens, int logit_rows) {
  // Of the largest step and of the one queued after it, as for logits.
  constexpr uint64_t kHeads = 2;
  return static_cast<uint64_t>(tokens) * (kLayersInFlight * row.widest_layer + row.tables) +
         kHeads * static_cast<uint64_t>(logit_rows) * (row.head + row.tables);
}

uint64_t adapter_bytes_at_once(const AdapterRowBytes& row, int tokens) {
  return static_cast<uint64_t>(tokens) * (row.all_layers + row.tables);
}

}  // namespace octavo
