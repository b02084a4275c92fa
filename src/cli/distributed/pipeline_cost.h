// pipeline_cost.h - what a model divided by layers over several machines is expected to reach.
// Arithmetic only: it leaves out attention over long contexts and everything that is not memory or
// network. bench/several_machines_cost.py has the same formulas. No MLX.
#pragma once

#include <span>
#include <vector>

namespace octavo {

// Bytes that one decode step reads, whatever the number of its sequences.
struct CostShape {
  int layers = 0;
  double layer_bytes = 0;  // weights of one layer
  double head_bytes = 0;   // output matrix; on the last machine
  double row_bytes = 0;    // hidden size times bytes per number: what a token sends per hop
};

struct CostMachine {
  double read_bytes_per_second = 0;
  double memory_bytes = 0;  // that octavo may use
};

// Between neighbours.
struct CostLink {
  double bytes_per_second = 0;
  double round_trip_seconds = 0;
};

struct PipelineCost {
  std::vector<int> layers = {};     // per machine
  std::vector<double> stages = {};  // seconds per decode step, per machine
  double one_stream = 0;            // tokens per second
  double all_streams = 0;           // tokens per second of `sequences` together
  double prompt_limit = 0;          // prompt tokens per second that the link carries; 0: no link
  double network_share = 0;         // of the time of one stream's token
  double bytes_per_token = 0;       // residual rows, over all links
  int messages_per_step = 0;        // to or from each worker: announcement, rows, result
  bool fits = false;                // the weights in the machines' memory
};

// Divides the layers in proportion to `shares`, each part at least one layer. There must be at least
// as many layers as shares.
std::vector<int> divide_layers(int layers, std::span<const double> shares);

// `machines` by rank, at least one. Layers are divided by memory.
PipelineCost pipeline_cost(const CostShape& shape, std::span<const CostMachine> machines,
                           const CostLink& link, int sequences);

// The part of a machine's memory that weights may take; the rest is for the KV cache and steps.
inline constexpr double kWeightsShare = 0.85;

}  // namespace octavo
