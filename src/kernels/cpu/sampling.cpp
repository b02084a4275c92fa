#include "kernels/cpu/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/philox.h"
#include "kernels/cpu/cut.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/logit_rules.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
// The candidate tokens in id order: all of a row, or those that top_k keeps.
struct Pool {
  LogitRow row;
  std::span<const int32_t> tokens;  // empty: each index is its token
  float largest = 0;

  int32_t token(int64_t index) const {
    return tokens.empty() ? static_cast<int32_t>(index) : tokens[static_cast<size_t>(index)];
  }
};

// Memory reused by all rows of a thread.
struct Space {
  std::vector<float> maxima;
  std::vector<float> sums;
  std::vector<int32_t> top_tokens;
  std::vector<float> top_logits;
  std::vector<float> top_maxima;
};

float* float_scratch(Scratch use, size_t count) {
  return reinterpret_cast<float*>(scratch(use, static_cast<int64_t>(count * sizeof(float))));
}

std::span<float> copy_to_scratch(std::span<const float> logits) {
  const std::span<float> out(float_scratch(Scratch::kLogits, logits.size()), logits.size());
  std::copy(logits.begin(), logits.end(), out.begin());
  return out;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(kernels().argmax(logits.data(), static_cast<int64_t>(logits.size())));
}

// Tokens with smaller logits have no weight (weigh() gives 0 below 2^-126).
float lightest(float largest, float temperature) {
  return std::max(largest - 88 * temperature, -kLargest);
}

Pool keep_top_k(const LogitRow& row, float largest, const RowSampling& sampling, Space& space) {
  const float reached = reached_by(row.maxima, sampling.top_k);
  const Cut cut = find_cut({.row = row,
                            .total = static_cast<double>(row.logits.size()),
                            .target = static_cast<double>(sampling.top_k),
                            .lowest = std::max(reached, lightest(largest, sampling.temperature)),
                            .largest = largest});
  indices_from(row, cut.logit, space.top_tokens);
  std::erase_if(space.top_tokens, [&](int32_t token) {
    return !cut.keeps(row.logits[static_cast<size_t>(token)], token);
  });
  space.top_logits.clear();
  for (int32_t token : space.top_tokens)
    space.top_logits.push_back(row.logits[static_cast<size_t>(token)]);
  find_maxima(space.top_logits, space.top_maxima);
  return {.row = {.logits = space.top_logits, .maxima = space.top_maxima},
          .tokens = space.top_tokens,
          .largest = largest};
}

double total_of(std::span<const float> sums) {
  double total = 0;
  for (float sum : sums) total += static_cast<double>(sum);
  return total;
}

// The smallest set of most likely tokens whose weight reaches top_p of the total.
Cut nucleus(const Pool& pool, const RowSampling& sampling, const float* weights, double total) {
  // All tokens lighter than this together weigh less than what may be left out, so the cut is not
  // among them. The exponent alone is precise enough, and the same with every C library.
  const double light = (1 - static_cast<double>(sampling.top_p)) * total /
                       static_cast<double>(pool.row.logits.size());
  const float distance = static_cast<float>(std::ilogb(light)) * 0.693148f * sampling.temperature;
  return find_cut(
      {.row = pool.row,
       .weights = weights,
       .total = total,
       .target = static_cast<double>(sampling.top_p) * total,
       .lowest = std::max(pool.largest + distance, lightest(pool.largest, sampling.temperature)),
       .largest = pool.largest});
}

// Removes the weights of tokens beyond the cut, also from the blocks' sums.
void drop_beyond(const Cut& cut, const LogitRow& row, float* weights, std::span<float> sums) {
  const float* logits = row.logits.data();
  const auto size = static_cast<int64_t>(row.logits.size());
  for (int64_t begin = 0; begin < size; begin += kLogitBlock) {
    const auto block = static_cast<size_t>(begin / kLogitBlock);
    const int64_t end = std::min(begin + kLogitBlock, size);
    const float from = begin <= cut.index ? cut.logit : next_above(cut.logit);
    if (row.maxima[block] < from) {
      sums[block] = 0;
      continue;
    }
    if (begin <= cut.index) {
      for (int64_t i = int64_t{cut.index} + 1; i < end; ++i)
        if (logits[i] == cut.logit) weights[i] = 0;
    }
    sums[block] = kernels().keep_from(logits + begin, weights + begin, end - begin, from);
  }
}

// The inverse of the cumulative distribution in id order, so that the result does not depend on how
// the cuts were found.
int64_t index_at(double uniform, std::span<const float> weights, std::span<const float> sums) {
  double left = uniform * total_of(sums);
  size_t block = 0;
  size_t heavy = 0;  // the last block with any weight: rounding may exceed the end
  for (; block < sums.size(); ++block) {
    if (sums[block] <= 0) continue;
    heavy = block;
    if (left < static_cast<double>(sums[block])) break;
    left -= static_cast<double>(sums[block]);
  }
  const size_t begin = heavy * kLogitBlock;
  const size_t end = std::min<size_t>(begin + kLogitBlock, weights.size());
  size_t found = begin;
  for (size_t i = begin; i < end; ++i) {
    if (weights[i] <= 0) continue;
    found = i;
    left -= static_cast<double>(weights[i]);
    if (left < 0) break;
  }
  return static_cast<int64_t>(found);
}

int32_t draw(const Pool& pool, const RowSampling& sampling, Space& space) {
  const size_t count = pool.row.logits.size();
  float* weights = float_scratch(Scratch::kWeights, count);
  space.sums.resize(pool.row.maxima.size());
  kernels().weigh({.logits = pool.row.logits.data(),
                   .count = static_cast<int64_t>(count),
                   .largest = pool.largest,
                   .scale = std::min(kLog2E / sampling.temperature, kLargest),
                   .floor = std::min(sampling.min_p, 1.0f)},
                  weights, space.sums.data());
  if (sampling.top_p < 1)
    drop_beyond(nucleus(pool, sampling, weights, total_of(space.sums)), pool.row, weights,
                space.sums);
  const double uniform = token_uniform(sampling.seed, sampling.choice, sampling.position);
  return pool.token(index_at(uniform, {weights, count}, space.sums));
}

// Never returns a token outside the mask, whatever the rules allow.
int32_t likeliest(std::span<const float> logits, std::span<const uint32_t> mask) {
  if (mask.empty()) return argmax(logits);
  const std::span<float> masked = copy_to_scratch(logits);
  ban_all_but(masked, mask);
  const int32_t best = argmax(masked);
  if (masked[static_cast<size_t>(best)] > -kInfinity) return best;
  const auto some = std::ranges::find_if(mask, [](uint32_t word) { return word != 0; });
  if (some == mask.end()) return best;
  return static_cast<int32_t>(some - mask.begin()) * 32 + std::countr_zero(*some);
}

std::span<const float> ruled_logits(std::span<const float> logits, const RowSampling& sampling,
                                    std::span<const uint32_t> mask,
                                    std::span<const TokenId> previous) {
  if (sampling.rules == nullptr && mask.empty()) return logits;
  const std::span<float> out = copy_to_scratch(logits);
  if (!mask.empty()) ban_all_but(out, mask);
  if (sampling.rules != nullptr) apply_rules(out, *sampling.rules, sampling.history, previous);
  return out;
}

}  // namespace

int32_t sample_row(std::span<const float> logits, const RowSampling& sampling,
                   std::span<const TokenId> previous) {
  const std::span<const uint32_t> mask =
      sampling.mask ? sampling.mask->wait() : std::span<const uint32_t>();
  const std::span<const float> ruled = ruled_logits(logits, sampling, mask, previous);
  if (!(sampling.temperature > 0)) {
    const int32_t best = argmax(ruled);
    return ruled[static_cast<size_t>(best)] > -kInfinity ? best : likeliest(logits, mask);
  }
  thread_local Space space;
  Pool pool{.row = {.logits = ruled, .maxima = {}}, .tokens = {}};
  pool.largest = find_maxima(ruled, space.maxima);
  pool.row.maxima = space.maxima;
  if (pool.largest == -kInfinity) return likeliest(logits, mask);
  if (pool.largest >= kLargest) return argmax(ruled);  // no larger threshold exists
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < ruled.size())
    pool = keep_top_k(pool.row, pool.largest, sampling, space);
  return draw(pool, sampling, space);
}

}  // namespace octavo::cpu
