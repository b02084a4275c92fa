#include "cli/distributed/tensor_cost.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "base/error.h"
#include "base/overloaded.h"

namespace octavo {
namespace {

constexpr double kLogitBytes = 4;
constexpr double kTokenBytes = 4;
constexpr int kMostRanks = 64;  // of --tensor-parallel-size

double mixer_columns(const LayerPlan& layer) {
  return std::visit(
      Overloaded{[](const AttentionPlan& plan) { return double{1} * plan.heads * plan.head_dim; },
                 [](const MlaPlan& plan) { return double{1} * plan.heads * plan.v_dim; },
                 [](const GatedDeltaPlan& plan) {  // q, k, v, z, b and a
                   return double{1} * plan.conv_channels() +
                          double{1} * plan.value_heads * (plan.v_dim + 2);
                 },
                 [](const Mamba2Plan& plan) {  // the gate, x, b, c and the time steps
                   return double{1} * plan.values() + plan.conv_channels() + plan.heads;
                 },
                 [](const ShortConvPlan& plan) { return 3.0 * plan.channels; },
                 [](const AbsentPlan&) { return 0.0; }},
      layer.mixer);
}

double columns_of(const MoePlan& plan) {
  return double{1} * plan.choice.top_k * plan.intermediate + plan.shared_intermediate;
}

double ffn_columns(const LayerPlan& layer) {
  return std::visit(Overloaded{[](const MlpPlan& plan) { return double{1} * plan.intermediate; },
                               [](const MoePlan& plan) { return columns_of(plan); },
                               [](const DenseAndExpertsPlan& plan) {
                                 return plan.dense.intermediate + columns_of(plan.experts);
                               },
                               [](const AbsentPlan&) { return 0.0; }},
                    layer.ffn);
}

int most_ranks_of(const LayerPlan& layer) {
  if (const auto* attention = std::get_if<AttentionPlan>(&layer.mixer)) return attention->kv_heads;
  if (const auto* latent = std::get_if<MlaPlan>(&layer.mixer)) return latent->heads;
  return kMostRanks;
}

}  // namespace

std::vector<double> gathered_columns(const DecoderPlan& plan) {
  std::vector<double> gathers;
  for (const LayerPlan& layer : plan.layers) {
    for (const double columns : {mixer_columns(layer), ffn_columns(layer)}) {
      if (columns == 0) continue;
      gathers.push_back(columns);
      gathers.push_back(plan.hidden);
    }
  }
  return gathers;
}

int most_tensor_ranks(const DecoderPlan& plan) {
  int most = kMostRanks;
  for (const LayerPlan& layer : plan.layers) most = std::min(most, most_ranks_of(layer));
  return most;
}

TensorCost tensor_cost(const CostShape& weights, const TensorShape& shape,
                       std::span<const CostMachine> machines, const CostLink& link, int sequences) {
  OCTAVO_CHECK(!machines.empty() && sequences >= 1);
  const auto ranks = static_cast<double>(machines.size());
  const double others = ranks - 1;
  const double columns = std::accumulate(shape.gathers.begin(), shape.gathers.end(), 0.0);
  const auto slowest = std::ranges::min_element(machines, {}, &CostMachine::read_bytes_per_second);
  const double computing = (weights.layers * weights.layer_bytes + weights.head_bytes) / ranks /
                           slowest->read_bytes_per_second;
  const double logits = others / ranks * shape.vocab * kLogitBytes;
  // A rank sends its part of each product to every other one; rank 0 receives the logits of all.
  // Every gather, the logits and the drawn tokens take half a round trip each.
  const double row = others / ranks * columns * shape.number_bytes;
  const auto calls = static_cast<double>(shape.gathers.size()) + 2;
  const auto step = [&](double rows) {
    if (others == 0) return computing;
    return computing + calls * link.round_trip_seconds / 2 +
           rows * (row + logits) / link.bytes_per_second;
  };
  TensorCost cost{.one_stream = 1 / step(1),
                  .all_streams = sequences / step(sequences),
                  .network_share = 1 - computing / step(1),
                  .memory_bytes = shape.divided_bytes / ranks + shape.whole_bytes};
  if (others > 0) {
    cost.prompt_limit = row > 0 ? link.bytes_per_second / row : 0;
    cost.bytes_per_token = others * columns * shape.number_bytes + logits + others * kTokenBytes;
    cost.calls_per_token = static_cast<int>(calls);
  }
  const auto smallest = std::ranges::min_element(machines, {}, &CostMachine::memory_bytes);
  cost.fits = cost.memory_bytes <= kWeightsShare * smallest->memory_bytes &&
              static_cast<int>(machines.size()) <= shape.most_ranks;
  return cost;
}

}  // namespace octavo
