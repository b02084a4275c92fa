#include "kernels/sampling.h"

#include <map>

#include "kernels/cpu/sample.h"
#include "kernels/test_support.h"

namespace octavo {
namespace {

std::map<int, int> draw_many(const std::vector<float>& logits, RowSampling sampling,
                             int draws = 20000) {
  std::map<int, int> counts;
  for (int i = 0; i < draws; ++i) {
    sampling.position = static_cast<uint32_t>(i);
    ++counts[cpu::sample_row(logits, sampling)];
  }
  return counts;
}

TEST(Sampling, GreedyTakesTheLikeliestAndTheLowerIdOnATie) {
  EXPECT_EQ(cpu::sample_row(std::vector<float>{1, 5, 3, 5}, {}), 1);
  EXPECT_EQ(cpu::sample_row(std::vector<float>{NAN, -2, NAN, -1}, {}), 3);
}

TEST(Sampling, FrequenciesFollowTheProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto counts = draw_many(logits, {.temperature = 1});
  EXPECT_NEAR(counts[0], 10000, 300);
  EXPECT_NEAR(counts[1], 6000, 300);
  EXPECT_NEAR(counts[2], 4000, 300);
  counts = draw_many(logits, {.temperature = 0.5f});  // squared: 25 : 9 : 4
  EXPECT_NEAR(counts[0], 20000 * 25 / 38, 300);
}

TEST(Sampling, TopKTopPAndMinPCutTheUnlikely) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.3f),
                                     std::log(0.2f)};
  EXPECT_EQ(draw_many(logits, {.temperature = 1, .top_k = 2}).size(), 2u);
  EXPECT_EQ(draw_many(logits, {.temperature = 1, .top_p = 0.39f}).size(), 1u);
  EXPECT_EQ(draw_many(logits, {.temperature = 1, .top_p = 0.6f}).size(), 2u);
  EXPECT_EQ(draw_many(logits, {.temperature = 1, .top_p = 0.75f}).size(), 3u);
  EXPECT_EQ(draw_many(logits, {.temperature = 1, .min_p = 0.6f}).size(), 2u);
  const auto counts = draw_many(logits, {.temperature = 1, .top_k = 2});
  EXPECT_NEAR(counts.at(1), 20000 * 4 / 7, 300);
}

TEST(Sampling, ADrawDoesNotDependOnTheRowsBesideIt) {
  std::mt19937 random(1);
  const mx::array logits = random_array(random, {9, 500});
  std::vector<RowSampling> rows;
  for (uint32_t i = 0; i < 9; ++i)
    rows.push_back({.temperature = 0.8f, .top_p = 0.9f, .seed = 5, .position = 100 + i});
  mx::array together = sample(logits, rows);
  together.eval();
  for (int i = 0; i < 9; ++i) {
    const mx::array one = mx::contiguous(mx::slice(logits, {i, 0}, {i + 1, 500}));
    mx::array alone = sample(one, {rows[static_cast<size_t>(i)]});
    alone.eval();
    EXPECT_EQ(alone.data<int32_t>()[0], together.data<int32_t>()[i]);
  }
}

}  // namespace
}  // namespace octavo
