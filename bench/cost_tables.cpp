#include "bench/cost_tables.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octavo::bench {
namespace {

constexpr int kLinesPerOctave = 4;
constexpr int kContextOctaves = 17;  // 131,072 tokens
constexpr int kSequenceOctaves = 8;  // 256 sequences of them

std::vector<double> geometric_axis(int octaves) {
  std::vector<double> axis;
  for (int i = 0; i <= octaves * kLinesPerOctave; ++i)
    axis.push_back(std::exp2(static_cast<double>(i) / kLinesPerOctave));
  return axis;
}

// At the measured context.
double seconds_of_batch(const std::vector<DecodeTime>& measured, double batch_size) {
  size_t upper = 1;
  while (upper + 1 < measured.size() && measured[upper].batch_size < batch_size) ++upper;
  const DecodeTime &from = measured[upper - 1], &to = measured[upper];
  const double slope = (to.seconds - from.seconds) / (to.batch_size - from.batch_size);
  return from.seconds + slope * (batch_size - from.batch_size);
}

}  // namespace

double decode_seconds(const MeasuredSteps& steps, double batch_size, double context) {
  OCTAVO_CHECK(steps.decode.size() >= 2);
  // Fewer sequences than measured cost no less: the weights are read all the same.
  const double batch = std::max(batch_size, static_cast<double>(steps.decode.front().batch_size));
  return std::max(0.0, seconds_of_batch(steps.decode, batch) +
                           steps.seconds_per_cached_token * batch * (context - steps.context));
}

std::vector<NpzArray> cost_tables(const MeasuredSteps& steps) {
  OCTAVO_CHECK(steps.prefill.size() >= 2);
  NpzArray tokens{.name = "prefill_isl", .shape = {steps.prefill.size()}, .values = {}};
  NpzArray times{.name = "prefill_ttft_ms", .shape = tokens.shape, .values = {}};
  for (const PrefillTime& prefill : steps.prefill) {
    tokens.values.push_back(prefill.tokens);
    times.values.push_back(prefill.seconds * 1e3);
  }
  const std::vector<double> contexts = geometric_axis(kContextOctaves);
  const std::vector<double> cached = geometric_axis(kContextOctaves + kSequenceOctaves);
  NpzArray table{.name = "decode_itl", .shape = {cached.size(), contexts.size()}, .values = {}};
  for (const double all : cached)
    for (const double one : contexts)
      table.values.push_back(decode_seconds(steps, all / one, one) * 1e3);
  return {std::move(tokens),
          std::move(times),
          {.name = "decode_active_kv_tokens", .shape = {cached.size()}, .values = cached},
          {.name = "decode_context_length", .shape = {contexts.size()}, .values = contexts},
          std::move(table)};
}

}  // namespace octavo::bench
