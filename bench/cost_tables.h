// cost_tables.h - measured step times as the tables that simulators of replicas read. No MLX.
#pragma once

#include <vector>

#include "bench/npz.h"

namespace octavo::bench {

struct PrefillTime {
  int tokens = 0;  // of one step
  double seconds = 0;
};

struct DecodeTime {
  int batch_size = 0;
  double seconds = 0;
};

struct MeasuredSteps {
  std::vector<PrefillTime> prefill;  // at least two, by ascending tokens
  std::vector<DecodeTime> decode;    // at least two, by ascending batch sizes
  int context = 0;                   // of every sequence in `decode`
  // What a longer context adds to a decode step, per token and sequence.
  double seconds_per_cached_token = 0;
};

// A decode step of that many sequences with `context` cached tokens each. Linear between the
// measured batch sizes and above the largest.
double decode_seconds(const MeasuredSteps& steps, double batch_size, double context);

// The arrays of Dynamo's mocker: prefill_isl and prefill_ttft_ms; decode_active_kv_tokens,
// decode_context_length and decode_itl, a table [cached tokens of all sequences, tokens of one]
// of milliseconds. The mocker interpolates linearly in both, and batch sizes are the quotient of
// the two, so the table's lines are close to each other.
std::vector<NpzArray> cost_tables(const MeasuredSteps& steps);

}  // namespace octavo::bench
