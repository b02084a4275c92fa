// tensor_cost.h - what a model is expected to reach whose matrices are divided over several machines
// (--tensor-parallel-size). Arithmetic only: it leaves out attention over long contexts and
// everything that is not memory or network. bench/several_machines_cost.py has the same formulas. No
// MLX.
#pragma once

#include <span>
#include <vector>

#include "cli/distributed/pipeline_cost.h"
#include "models/decoder_plan.h"

namespace octavo {

struct TensorShape {
  // Of a token's way through all layers: the columns of each product that every machine needs whole.
  std::vector<double> gathers = {};
  double number_bytes = 2;  // of a gathered column
  int vocab = 0;
  // Memory of the weights that are divided (layers, output matrix), and of those that every machine
  // has (embeddings).
  double divided_bytes = 0;
  double whole_bytes = 0;
  int most_ranks = 64;  // the fewest KV heads of a layer
};

struct TensorCost {
  double one_stream = 0;       // tokens per second
  double all_streams = 0;      // tokens per second of `sequences` together
  double prompt_limit = 0;     // prompt tokens per second that the link carries; 0: no link
  double network_share = 0;    // of the time of one stream's token
  double bytes_per_token = 0;  // gathered columns, logits and tokens, over all links
  int calls_per_token = 0;     // transfers that follow each other
  double memory_bytes = 0;     // weights of one machine
  bool fits = false;           // the weights in each machine's memory, and the ranks in the model
};

// Columns that a token's rows are gathered of, in every layer of the plan: of the mixer's result
// (its heads, or its inputs if every machine runs the recurrence), the hidden row, the activation of
// the feed-forward part, and the hidden row again.
std::vector<double> gathered_columns(const DecoderPlan& plan);
// The fewest KV heads of an attention layer (heads, for latent attention); 64 if there are none.
int most_tensor_ranks(const DecoderPlan& plan);

// `weights`: what a step reads. `machines` by rank, at least one; each takes an equal part. `link`:
// between any two of them.
TensorCost tensor_cost(const CostShape& weights, const TensorShape& shape,
                       std::span<const CostMachine> machines, const CostLink& link, int sequences);

}  // namespace octavo
