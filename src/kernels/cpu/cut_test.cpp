#include "kernels/cpu/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/kernel_table.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/random_logits.h"

namespace octavo::cpu {
namespace {

// Numbers only, the largest first, the lower index first on a tie.
std::vector<int32_t> sorted_indices(const std::vector<float>& logits) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -kInfinity) order.push_back(static_cast<int32_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return order;
}

struct Case {
  std::vector<float> logits;
  std::vector<float> maxima;
  float largest = 0;
  LogitRow row() const { return {.logits = logits, .maxima = maxima}; }
};

Case random_case(std::mt19937& random, size_t vocab) {
  Case c;
  c.logits = random_logits(random, vocab, random_shape(random));
  c.largest = find_maxima(c.logits, c.maxima);
  return c;
}

size_t random_vocab(std::mt19937& random) {
  return random() % 50 == 0 ? 30000 + random() % 120000 : 1 + random() % 3000;
}

// Comparisons on computing threads take denormals for zeros.
TEST(Cut, NextAboveSkipsDenormals) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  prepare_thread();
  EXPECT_EQ(next_above(1), std::nextafter(1.0f, 2.0f));
  EXPECT_EQ(next_above(0), kSmallest);
  EXPECT_EQ(next_above(-0.0f), kSmallest);
  EXPECT_EQ(next_above(-kSmallest), 0);
  EXPECT_EQ(next_above(std::numeric_limits<float>::max()), kInfinity);
}

TEST(Cut, ByCountIsWhereASortWouldCut) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(1);
    for (int trial = 0; trial < 800; ++trial) {
      const Case c = random_case(random, random_vocab(random));
      const auto order = sorted_indices(c.logits);
      const size_t count = 1 + random() % (random() % 2 == 0 ? order.size() : 1 + order.size() / 9);
      const Cut cut =
          find_cut({.row = c.row(),
                    .total = static_cast<double>(c.logits.size()),
                    .target = static_cast<double>(count),
                    .lowest = std::max(-100.0f, reached_by(c.maxima, static_cast<int64_t>(count))),
                    .largest = c.largest});
      EXPECT_EQ(cut.index, order[count - 1]) << name_of(isa) << " trial " << trial;
      EXPECT_EQ(cut.logit, c.logits[static_cast<size_t>(cut.index)]);
    }
  }
}

// The fewest that reach the target, up to rounding of the sums.
TEST(Cut, ByWeightKeepsTheFewestThatReachTheTarget) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(2);
    for (int trial = 0; trial < 800; ++trial) {
      const Case c = random_case(random, random_vocab(random));
      std::vector<float> weights(c.logits.size());
      std::vector<float> sums(c.maxima.size());
      kernels().weigh({.logits = c.logits.data(),
                       .count = static_cast<int64_t>(c.logits.size()),
                       .largest = c.largest,
                       .scale = random() % 2 == 0 ? 1.0f : 0.1f},
                      weights.data(), sums.data());
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      const double target = total * (random() % 1001) / 1000;
      const Cut cut = find_cut({.row = c.row(),
                                .weights = weights.data(),
                                .total = total,
                                .target = target,
                                .lowest = -100,
                                .largest = c.largest});
      double reached = 0;
      double last = 0;
      bool ended = false;
      for (int32_t index : sorted_indices(c.logits)) {
        const auto at = static_cast<size_t>(index);
        const bool kept = cut.keeps(c.logits[at], index);
        EXPECT_FALSE(kept && ended);
        ended = !kept;
        if (ended) continue;
        last = static_cast<double>(weights[at]);
        reached += last;
      }
      EXPECT_GT(reached, 0) << name_of(isa) << " trial " << trial;
      EXPECT_GE(reached, target - 1e-6 * total) << name_of(isa) << " trial " << trial;
      EXPECT_TRUE(reached == 1 || reached - last < target + 1e-6 * total) << trial;
    }
  }
}

TEST(Cut, WithoutEnoughKeepsAllFromTheLowest) {
  Case c;
  c.logits = {1, -5, 3, 2};
  c.largest = find_maxima(c.logits, c.maxima);
  const Cut cut =
      find_cut({.row = c.row(), .total = 4, .target = 10, .lowest = 0, .largest = c.largest});
  EXPECT_EQ(cut.index, 0);
  EXPECT_FALSE(cut.keeps(-5, 1));
}

TEST(Cut, IndicesFromListsWhatReachesIt) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(3);
    for (int trial = 0; trial < 100; ++trial) {
      const Case c = random_case(random, 1 + random() % 2000);
      const float from = static_cast<float>(random() % 5) - 2;
      std::vector<int32_t> expected;
      for (size_t i = 0; i < c.logits.size(); ++i)
        if (c.logits[i] >= from) expected.push_back(static_cast<int32_t>(i));
      std::vector<int32_t> found;
      indices_from(c.row(), from, found);
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace octavo::cpu
