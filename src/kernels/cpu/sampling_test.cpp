#include "kernels/cpu/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/philox.h"
#include "kernels/cpu/cut.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/random_logits.h"

namespace octavo::cpu {
namespace {

constexpr double kRounding = 3e-6;  // of sums in float32

// The weights in double, by sorting; empty if a cut is within rounding of another token.
std::vector<double> reference_weights(const std::vector<float>& logits, const RowSampling& s) {
  std::vector<size_t> order;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -kInfinity) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> weights(logits.size());
  const double largest = static_cast<double>(logits[order[0]]);
  const auto min_p = static_cast<double>(s.min_p);
  for (size_t i : order) {
    const double w =
        std::exp((static_cast<double>(logits[i]) - largest) / static_cast<double>(s.temperature));
    if (std::abs(w - min_p) < kRounding * w) return {};
    weights[i] = w < min_p ? 0 : w;
  }
  if (s.top_k > 0)
    for (size_t i = static_cast<size_t>(s.top_k); i < order.size(); ++i) weights[order[i]] = 0;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double reached = 0;
  for (size_t i = 0; i < order.size() && s.top_p < 1; ++i) {
    const double missing = static_cast<double>(s.top_p) * total - reached;
    if (std::abs(missing) < kRounding * total && i > 0) return {};
    reached += weights[order[i]];
    if (missing <= 0 && i > 0) weights[order[i]] = 0;
  }
  return weights;
}

// The token whose share of [0, 1) contains the uniform number, or its neighbour within rounding.
TEST(SampleRow, InvertsTheReferenceDistribution) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(1);
    int unclear = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      const size_t vocab = trial % 100 == 0 ? 151936 : 1 + random() % 2000;
      const auto logits = random_logits(random, vocab, random_shape(random));
      const RowSampling s = random_sampling(random, vocab);
      const auto weights = reference_weights(logits, s);
      const auto token = static_cast<size_t>(sample_row(logits, s));
      ASSERT_LT(token, vocab);
      if (weights.empty()) {
        ++unclear;
        continue;
      }
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      const double below =
          std::accumulate(weights.begin(), weights.begin() + static_cast<int64_t>(token), 0.0);
      const double at = token_uniform(s.seed, s.choice, s.position) * total;
      EXPECT_GT(weights[token], 0) << name_of(isa) << " trial " << trial;
      EXPECT_LE(below, at + kRounding * total) << name_of(isa) << " trial " << trial;
      EXPECT_GE(below + weights[token], at - kRounding * total)
          << name_of(isa) << " trial " << trial;
    }
    EXPECT_LT(unclear, 100);
  }
}

std::map<int, int> draw_many(const std::vector<float>& logits, RowSampling sampling,
                             int draws = 20000) {
  std::map<int, int> counts;
  for (int i = 0; i < draws; ++i) {
    sampling.position = static_cast<uint32_t>(i);
    ++counts[sample_row(logits, sampling)];
  }
  return counts;
}

TEST(SampleRow, FrequenciesFollowTheProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto counts = draw_many(logits, {.temperature = 1});
  EXPECT_NEAR(counts[0], 10000, 300);
  EXPECT_NEAR(counts[1], 6000, 300);
  EXPECT_NEAR(counts[2], 4000, 300);
  counts = draw_many(logits, {.temperature = 0.5f});  // squared: 25 : 9 : 4
  EXPECT_NEAR(counts[0], 20000 * 25 / 38, 300);
}

TEST(SampleRow, FrequenciesOverManyBlocksPassAChiSquareTest) {
  std::mt19937 random(2);
  const auto logits = random_logits(random, 1000, LogitShape::kFlat);
  const RowSampling s{.temperature = 1.5f, .top_p = 0.95f};
  const auto weights = reference_weights(logits, s);
  ASSERT_FALSE(weights.empty());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  constexpr int kDraws = 100000;
  auto counts = draw_many(logits, s, kDraws);
  double chi_square = 0;
  int kept = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int count = counts[static_cast<int>(i)];
    if (weights[i] == 0) {
      EXPECT_EQ(count, 0);
      continue;
    }
    ++kept;
    const double expected = kDraws * weights[i] / total;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_NEAR(chi_square, kept, 5 * std::sqrt(2.0 * kept));
}

TEST(SampleRow, TopKTopPAndMinPCutTheUnlikely) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.3f),
                                     std::log(0.2f)};
  const auto distinct = [&](const RowSampling& s) { return draw_many(logits, s, 2000).size(); };
  EXPECT_EQ(distinct({.temperature = 1, .top_k = 2}), 2u);
  EXPECT_EQ(distinct({.temperature = 1, .top_k = 4}), 4u);
  EXPECT_EQ(distinct({.temperature = 1, .top_k = 1000}), 4u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 0}), 1u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 1e-9f}), 1u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 0.39f}), 1u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 0.6f}), 2u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 0.75f}), 3u);
  EXPECT_EQ(distinct({.temperature = 1, .top_p = 0.55f, .top_k = 2}), 1u);  // 4/7 of the two
  EXPECT_EQ(distinct({.temperature = 1, .min_p = 0.6f}), 2u);
  EXPECT_EQ(distinct({.temperature = 1, .min_p = 1}), 1u);
}

TEST(SampleRow, TiesAtTheCutGoToTheLowerId) {
  std::vector<float> logits(700, 1);
  logits[650] = 2;
  for (const RowSampling& s : {RowSampling{.temperature = 1, .top_k = 3},
                               RowSampling{.temperature = 10, .top_p = 2.5f / 700}}) {
    const auto counts = draw_many(logits, s, 2000);
    EXPECT_EQ(counts.size(), 3u);
    for (int token : {0, 1, 650}) EXPECT_TRUE(counts.contains(token));
  }
}

TEST(SampleRow, GreedyReturnsTheMostLikelyAndTheLowerIdOnATie) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    EXPECT_EQ(sample_row(std::vector<float>{1, 5, 3, 5}, {}), 1);
    EXPECT_EQ(sample_row(std::vector<float>{NAN, -2, NAN, -1}, {}), 3);
    std::mt19937 random(3);
    for (int trial = 0; trial < 500; ++trial) {
      const LogitShape shape = random_shape(random);
      const auto logits = random_logits(random, 1 + random() % 3000, shape);
      size_t best = 0;
      for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > logits[best] || !(logits[best] > -kInfinity)) best = i;
      EXPECT_EQ(sample_row(logits, {}), static_cast<int32_t>(best));
      EXPECT_EQ(sample_row(logits, {.temperature = 2, .top_k = 1}), static_cast<int32_t>(best));
      if (shape == LogitShape::kTied || shape == LogitShape::kEqual) continue;
      EXPECT_EQ(sample_row(logits, {.temperature = 1e-30f}), static_cast<int32_t>(best));
    }
  }
}

TEST(SampleRow, OddLogitsStillGiveAToken) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    for (const RowSampling& s : {RowSampling{}, RowSampling{.temperature = 1},
                                 RowSampling{.temperature = 1, .top_p = 0.5f},
                                 RowSampling{.temperature = 1e38f, .top_p = 0.5f, .top_k = 2}}) {
      EXPECT_EQ(sample_row(std::vector<float>{1, kInfinity, NAN}, s), 1);
      EXPECT_EQ(sample_row(std::vector<float>{NAN, NAN}, s), 0);
      EXPECT_EQ(sample_row(std::vector<float>{NAN, -kInfinity}, s), 1);
      EXPECT_EQ(sample_row(std::vector<float>{-kInfinity, -3, NAN}, s), 1);
      EXPECT_EQ(sample_row(std::vector<float>{-kMost, kMost}, s), 1);
      const int token = sample_row(std::vector<float>{-kMost, -kMost}, s);
      EXPECT_TRUE(token == 0 || token == 1);
    }
  }
}

TEST(SampleRow, WithAllTokensBannedIgnoresTheRules) {
  const auto rules = std::make_shared<LogitRules>(LogitRules{.allowed = {0}});
  for (float temperature : {0.0f, 1.0f})
    EXPECT_EQ(sample_row(std::vector<float>{1, 4, 2},
                         {.temperature = temperature, .top_p = 0.5f, .rules = rules}),
              1);
}

TEST(SampleRow, RulesChangeTheDrawAndLeaveTheLogitsAlone) {
  const std::vector<float> logits = {1, 4, 2};
  const auto rules = std::make_shared<LogitRules>(LogitRules{.logit_bias = {{1, -100.0f}}});
  EXPECT_EQ(sample_row(logits, {.rules = rules}), 2);
  EXPECT_FALSE(draw_many(logits, {.temperature = 1, .rules = rules}, 1000).contains(1));
  EXPECT_EQ(logits[1], 4);
}

TEST(SampleRow, DrawsAreTheSameOnEverySet) {
  prepare_thread();
  std::mt19937 random(4);
  for (int trial = 0; trial < 300; ++trial) {
    const auto logits = random_logits(random, 1 + random() % 5000, random_shape(random));
    const RowSampling s = random_sampling(random, logits.size());
    std::map<int32_t, int> tokens;
    for (Isa isa : available_isas()) {
      const IsaScope scope(isa);
      ++tokens[sample_row(logits, s)];
    }
    EXPECT_EQ(tokens.size(), 1u);
  }
}

}  // namespace
}  // namespace octavo::cpu
