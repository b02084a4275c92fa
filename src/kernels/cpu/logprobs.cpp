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

// Sums of the exponentials, by block.
void sum_blocks(const LogitRow& row, float largest, std::vector<float>& sums) {
  const size_t count = row.logits.size();
  auto* weights = reinterpret_cast<float*>(
      scratch(Scratch::kWeights, static_cast<int64_t>(count * sizeof(float))));
  sums.resize(row.maxima.size());
  kernels().weigh({.logits = row.logits.data(),
                   .count = static_cast<int64_t>(count),
                   .largest = largest,
                   .scale = kLog2E},
                  weights, sums.data());
}

// The logarithm of the sum of all exponentials.
double log_total(std::span<const float> sums, float largest) {
  double total = 0;
  for (float sum : sums) total += static_cast<double>(sum);
  return static_cast<double>(largest) + portable_log(total);
}

OCTAVO_CLONES int32_t count_above(const float* logits, int64_t count, float limit) {
  int32_t above = 0;
  for (int64_t i = 0; i < count; ++i) above += logits[i] > limit ? 1 : 0;
  return above;
}

int32_t number_above(const LogitRow& row, float logit) {
  int32_t above = 0;
  for (size_t block = 0; block < row.maxima.size(); ++block) {
    if (!(row.maxima[block] > logit)) continue;
    const size_t begin = block * kLogitBlock;
    const size_t end = std::min<size_t>(begin + kLogitBlock, row.logits.size());
    above += count_above(row.logits.data() + begin, static_cast<int64_t>(end - begin), logit);
  }
  return above;
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
  thread_local std::vector<float> maxima, sums, top_logits;
  thread_local std::vector<int32_t> likeliest;
  const float largest = find_maxima(logits, maxima);
  const LogitRow row{.logits = logits, .maxima = maxima};
  if (std::isfinite(largest)) sum_blocks(row, largest, sums);
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  const int32_t above = number_above(row, number(logit(token)));
  likeliest.clear();
  if (count > 0) find_likeliest(row, static_cast<size_t>(count), likeliest);
  top_logits.clear();
  for (const int32_t id : likeliest) top_logits.push_back(logit(id));
  write_no_logprobs(out);
  finish_logprobs({.token = token,
                   .logit = logit(token),
                   .largest = largest,
                   .sums = sums,
                   .above = {&above, 1},
                   .ids = likeliest,
                   .logits = top_logits},
                  out);
}

void finish_logprobs(const FoundLogprobs& found, const LogprobsRow& out) {
  const bool is_finite = std::isfinite(found.largest);
  const double total = is_finite ? log_total(found.sums, found.largest) : 0;
  const auto write = [&](size_t column, int32_t id, float logit) {
    out.ids[column] = id;
    if (is_finite)
      out.values[column] = static_cast<float>(static_cast<double>(number(logit)) - total);
  };
  write(0, found.token, found.logit);
  for (size_t i = 0; i < found.ids.size(); ++i) write(1 + i, found.ids[i], found.logits[i]);
  uint32_t rank = 1;  // unsigned: the sum of any numbers is defined
  for (const int32_t above : found.above) rank += static_cast<uint32_t>(above);
  *out.rank = static_cast<int32_t>(rank);
}

void write_no_logprobs(const LogprobsRow& out) {
  std::fill(out.values.begin(), out.values.end(), -kInfinity);
  std::fill(out.ids.begin(), out.ids.end(), -1);
  *out.rank = 0;
}

}  // namespace octavo::cpu
