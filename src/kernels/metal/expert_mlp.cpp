#include "kernels/metal/expert_mlp.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/metal/expert_mlp_params.h"
#include "kernels/metal/linear_params.h"

namespace octavo::metal {
namespace {

// Large tiles pay off when experts have more than 8 rows on average. Small ones waste less work, and an
// expert has at most one row of each token; twice the average fits most experts into one tile.
int rows_of_tile(int tokens, int pairs, int experts) {
  if (pairs > 8 * experts) return kManyRows;
  const int wanted = std::min({tokens, 2 * ((pairs + experts - 1) / experts), 8});
  int rows = 1;
  while (rows < wanted) rows *= 2;
  return rows;
}

mx::array places_of(const mx::array& ids, Encoder& encoder) {
  return encoder.temporary({static_cast<int>(ids.size())}, mx::int32);
}

// Sorts the pairs by expert. Pair p reads row p / pairs_per_row; places: [pairs], receives the place
// of each pair in the sorted order.
ExpertTiles sort_pairs(const mx::array& ids, int experts, int pairs_per_row,
                       const mx::array& places, Encoder& encoder) {
  OCTAVO_CHECK(experts <= kMostExperts);
  const auto pairs = static_cast<int>(ids.size());
  const int tile_rows = rows_of_tile(ids.shape(0), pairs, experts);
  const int most_tiles = pairs / tile_rows + std::min(pairs, experts);
  const mx::array tiles = encoder.temporary({1 + most_tiles * kTileWords}, mx::int32);
  const mx::array rows = encoder.temporary({pairs}, mx::int32);
  Launch launch("expert_order");
  launch.input("ids", ids)
      .output("tokens", rows)
      .output("places", places)
      .output("tiles", tiles)
      .bytes(
          "params",
          ExpertOrderParams{
              .pairs = pairs, .top_k = pairs_per_row, .experts = experts, .tile_rows = tile_rows})
      .grid({1}, {kOrderThreads});
  encoder.run(launch);
  return {tiles, rows, most_tiles, tile_rows};
}

// Returns the tiles, whose order is that of the rows of call.out.
ExpertTiles run_gate_and_up(const ExpertActivationsCall& call, Encoder& encoder) {
  ExpertTiles tiles = sort_pairs(call.ids, call.experts, call.ids.shape(1), call.places, encoder);
  linear({.x = call.x,
          .layers = {call.gate, call.up},
          .is_gated = true,
          .activation = call.activation,
          .experts = tiles,
          .out = call.out},
         encoder);
  return tiles;
}

// `tiles` refer to the rows of call.inner.
void run_down(const ExpertOutputsCall& call, const ExpertTiles& tiles, const mx::array& places,
              Encoder& encoder) {
  const mx::array& out = call.out;
  const int hidden = out.shape(1);
  const mx::array products =
      encoder.temporary({static_cast<int>(call.ids.size()), hidden}, mx::float32);
  linear({.x = call.inner, .layers = {call.down}, .experts = tiles, .out = products}, encoder);
  Launch launch("expert_sum", {dtype_of(out)});
  launch.constant("kHasShared", call.shared.has_value())
      .constant("kHasSharedGate", call.shared_gate.has_value())
      .constant("kHasResidual", call.residual.has_value())
      .input("products", products)
      .input("places", places)
      .input("weights", call.weights)
      .optional_input("shared", call.shared)
      .optional_input("shared_gate", call.shared_gate)
      .optional_input("residual", call.residual)
      .output("out", out)
      .bytes("params", ExpertSumParams{.top_k = call.ids.shape(1), .hidden = hidden})
      .grid({static_cast<uint32_t>((hidden + kSumThreads - 1) / kSumThreads),
             static_cast<uint32_t>(out.shape(0))},
            {kSumThreads});
  encoder.run(launch);
}

}  // namespace

void expert_mlp(const ExpertMlpCall& call, Encoder& encoder) {
  if (call.out.size() == 0) return;
  const auto pairs = static_cast<int>(call.ids.size());
  const auto inner_size = static_cast<int>(call.gate.layout.rows);
  const ExpertActivationsCall first{.x = call.x,
                                    .ids = call.ids,
                                    .experts = call.experts,
                                    .gate = call.gate,
                                    .up = call.up,
                                    .activation = call.activation,
                                    .out = encoder.temporary({pairs, inner_size}, call.x.dtype()),
                                    .places = places_of(call.ids, encoder)};
  ExpertTiles tiles = run_gate_and_up(first, encoder);
  tiles.list = std::nullopt;  // first.out is already in tile order
  run_down({.inner = first.out,
            .ids = call.ids,
            .weights = call.weights,
            .experts = call.experts,
            .down = call.down,
            .shared = call.shared,
            .shared_gate = call.shared_gate,
            .residual = call.residual,
            .out = call.out},
           tiles, first.places, encoder);
}

void expert_activations(const ExpertActivationsCall& call, Encoder& encoder) {
  if (call.out.size() == 0) return;
  run_gate_and_up(call, encoder);
}

void expert_outputs(const ExpertOutputsCall& call, Encoder& encoder) {
  if (call.out.size() == 0) return;
  const mx::array places = places_of(call.ids, encoder);
  run_down(call, sort_pairs(call.ids, call.experts, 1, places, encoder), places, encoder);
}

}  // namespace octavo::metal
