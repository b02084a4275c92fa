#include "kernels/metal/expert_mlp.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/metal/expert_mlp_params.h"
#include "kernels/metal/linear_params.h"

namespace octavo::metal {
namespace {

// The pairs, sorted by expert.
struct SortedPairs {
  ExpertTiles tiles;
  mx::array places;  // [pairs]
};

// Large tiles pay off when experts have more than 8 rows on average. Small ones waste less work, and an
// expert has at most one row of each token; twice the average fits most experts into one tile.
int rows_of_tile(int tokens, int pairs, int experts) {
  if (pairs > 8 * experts) return kManyRows;
  const int wanted = std::min({tokens, 2 * ((pairs + experts - 1) / experts), 8});
  int rows = 1;
  while (rows < wanted) rows *= 2;
  return rows;
}

SortedPairs sort_pairs(const ExpertMlpCall& call, Encoder& encoder) {
  OCTAVO_CHECK(call.experts <= kMostExperts);
  const auto pairs = static_cast<int>(call.ids.size());
  const int tile_rows = rows_of_tile(call.ids.shape(0), pairs, call.experts);
  const int most_tiles = pairs / tile_rows + std::min(pairs, call.experts);
  const mx::array tiles = encoder.temporary({1 + most_tiles * kTileWords}, mx::int32);
  const mx::array tokens = encoder.temporary({pairs}, mx::int32);
  const mx::array places = encoder.temporary({pairs}, mx::int32);
  Launch launch("expert_order");
  launch.input("ids", call.ids)
      .output("tokens", tokens)
      .output("places", places)
      .output("tiles", tiles)
      .bytes("params", ExpertOrderParams{.pairs = pairs,
                                         .top_k = call.ids.shape(1),
                                         .experts = call.experts,
                                         .tile_rows = tile_rows})
      .grid({1}, {kOrderThreads});
  encoder.run(launch);
  return {{tiles, tokens, most_tiles, tile_rows}, places};
}

void sum_products(const ExpertMlpCall& call, const mx::array& products, const mx::array& places,
                  Encoder& encoder) {
  const mx::array& out = call.out;
  const int hidden = out.shape(1);
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
  const SortedPairs sorted = sort_pairs(call, encoder);
  const mx::array inner =
      encoder.temporary({pairs, static_cast<int>(call.gate.layout.rows)}, call.x.dtype());
  linear({.x = call.x,
          .layers = {call.gate, call.up},
          .is_gated = true,
          .activation = call.activation,
          .experts = sorted.tiles,
          .out = inner},
         encoder);
  ExpertTiles in_order = sorted.tiles;
  in_order.list = std::nullopt;  // inner is already in tile order
  const mx::array products = encoder.temporary({pairs, call.out.shape(1)}, mx::float32);
  linear({.x = inner, .layers = {call.down}, .experts = in_order, .out = products}, encoder);
  sum_products(call, products, sorted.places, encoder);
}

}  // namespace octavo::metal
