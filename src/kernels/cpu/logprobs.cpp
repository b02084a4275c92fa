#include "kernels/cpu/logprobs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/portable_math.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/cut.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

float number(float logit) { return std::isnan(logit) ? -kInfinity : logit; }

// The logarithm of the sum of all exponentials.
double log_total(const LogitRow& row, float largest) {
  const size_t count = row.logits.size();
  auto* weights = reinterpret_cast<float*>(
      scratch(Scratch::kWeights, static_cast<int64_t>(count * sizeof(float))));
  thread_local std::vector<float> sums;
  sums.resize(row.maxima.size());
  kernels().weigh({.logits = row.logits.data(),
                   .count = static_cast<int64_t>(count),
                   .largest = largest,
                   .scale = kLog2E},
                  weights, sums.data());
  double total = 0;
  for (float sum : sums) total += static_cast<double>(sum);
  return static_cast<double>(largest) + portable_log(total);
}

OCTAVO_CLONES int32_t count_above(const float* logits, int64_t count, float limit) {
  int32_t above = 0;
  for (int64_t i = 0; i < count; ++i) above += logits[i] > limit ? 1 : 0;
  return above;
}

int32_t rank_of(const LogitRow& row, float logit) {
  int32_t rank = 1;
  for (size_t block = 0; block < row.maxima.size(); ++block) {
    if (!(row.maxima[block] > logit)) continue;
    const size_t begin = block * kLogitBlock;
    const size_t end = std::min<size_t>(begin + kLogitBlock, row.logits.size());
    rank += count_above(row.logits.data() + begin, static_cast<int64_t>(end - begin), logit);
  }
  return rank;
}

// The `count` most likely, in descending order, the lower id first on a tie.
void find_likeliest(const LogitRow& row, size_t count, std::vector<int32_t>& tokens) {
  const float reached = reached_by(row.maxima, static_cast<int64_t>(count));
  if (reached > -kInfinity && row.logits.size() > count) {
    indices_from(row, reached, tokens);
  } else {
    tokens.resize(row.logits.size());
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  }
  const auto logit = [&](int32_t token) { return number(row.logits[static_cast<size_t>(token)]); };
  std::partial_sort(
      tokens.begin(), tokens.begin() + static_cast<int64_t>(count), tokens.end(),
      [&](int32_t a, int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  tokens.resize(count);
}

}  // namespace

void write_logprobs(std::span<const float> logits, TokenId token, int count,
                    const LogprobsRow& out) {
  write_no_logprobs(out);
  thread_local std::vector<float> maxima;
  thread_local std::vector<int32_t> likeliest;
  const float largest = find_maxima(logits, maxima);
  const LogitRow row{.logits = logits, .maxima = maxima};
  const double total = std::isfinite(largest) ? log_total(row, largest) : 0;
  const auto write = [&](size_t column, int32_t id) {
    const float logit = number(logits[static_cast<size_t>(id)]);
    out.ids[column] = id;
    if (std::isfinite(largest))
      out.values[column] = static_cast<float>(static_cast<double>(logit) - total);
  };
  write(0, token);
  *out.rank = rank_of(row, number(logits[static_cast<size_t>(token)]));
  if (count == 0) return;
  find_likeliest(row, static_cast<size_t>(count), likeliest);
  for (size_t i = 0; i < likeliest.size(); ++i) write(1 + i, likeliest[i]);
}

void write_no_logprobs(const LogprobsRow& out) {
  std::fill(out.values.begin(), out.values.end(), -kInfinity);
  std::fill(out.ids.begin(), out.ids.end(), -1);
  *out.rank = 0;
}

}  // namespace octavo::cpu
