#include "cli/distributed/pipeline_cost.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace octavo {
namespace {

// Of every machine, the bytes of the weights of its layers.
std::vector<double> stage_bytes(const CostShape& shape, std::span<const int> layers) {
  std::vector<double> bytes;
  for (const int count : layers) bytes.push_back(count * shape.layer_bytes);
  bytes.back() += shape.head_bytes;
  return bytes;
}

std::vector<double> memory_bytes_of(std::span<const CostMachine> machines) {
  std::vector<double> bytes;
  for (const CostMachine& machine : machines) bytes.push_back(machine.memory_bytes);
  return bytes;
}

}  // namespace

std::vector<int> divide_layers(int layers, std::span<const double> shares) {
  const int parts = static_cast<int>(shares.size());
  OCTAVO_CHECK(parts >= 1 && layers >= parts);
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int> counts;
  double wanted = 0;
  int given = 0;
  for (int i = 0; i < parts; ++i) {
    wanted += total > 0 ? layers * shares[static_cast<size_t>(i)] / total
                        : static_cast<double>(layers) / parts;
    // Every later part needs one layer.
    const int most = layers - (parts - 1 - i);
    const int end = std::clamp(static_cast<int>(wanted + 0.5), given + 1, most);
    counts.push_back((i + 1 == parts ? layers : end) - given);
    given += counts.back();
  }
  return counts;
}

PipelineCost pipeline_cost(const CostShape& shape, std::span<const CostMachine> machines,
                           const CostLink& link, int sequences) {
  OCTAVO_CHECK(!machines.empty() && sequences >= 1);
  const int count = static_cast<int>(machines.size());
  const int hops = count - 1;
  PipelineCost cost{.layers = divide_layers(shape.layers, memory_bytes_of(machines))};
  const std::vector<double> bytes = stage_bytes(shape, cost.layers);
  cost.fits = true;
  for (size_t i = 0; i < machines.size(); ++i) {
    cost.stages.push_back(bytes[i] / machines[i].read_bytes_per_second);
    cost.fits = cost.fits && bytes[i] <= kWeightsShare * machines[i].memory_bytes;
  }
  const double computing = std::accumulate(cost.stages.begin(), cost.stages.end(), 0.0);
  // A hop is half a round trip and the bytes; the drawn token returns in half a round trip.
  const auto round = [&](double rows) {
    if (hops == 0) return computing;
    const double hop = link.round_trip_seconds / 2 + rows * shape.row_bytes / link.bytes_per_second;
    return computing + hops * hop + link.round_trip_seconds / 2;
  };
  cost.one_stream = 1 / round(1);
  cost.network_share = 1 - computing / round(1);
  // As many groups are in flight as there are machines. Each waits for the slowest part, which
  // serves the groups one after the other.
  const int groups = std::min(sequences, count);
  const double rows = static_cast<double>(sequences) / groups;
  double slowest = *std::ranges::max_element(cost.stages);
  if (hops > 0) slowest = std::max(slowest, rows * shape.row_bytes / link.bytes_per_second);
  cost.all_streams = sequences / std::max(groups * slowest, round(rows));
  cost.prompt_limit = hops > 0 ? link.bytes_per_second / shape.row_bytes : 0;
  cost.bytes_per_token = hops * shape.row_bytes;
  cost.messages_per_step = 3 * hops;
  return cost;
}

}  // namespace octavo
