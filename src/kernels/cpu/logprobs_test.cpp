#include "kernels/cpu/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/cpu/cut.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/random_logits.h"

namespace octavo::cpu {
namespace {

struct Written {
  std::vector<float> values;
  std::vector<int32_t> ids;
  int32_t rank = -1;
};

Written write(const std::vector<float>& logits, TokenId token, int count, size_t columns) {
  Written out{.values = std::vector<float>(columns, 7), .ids = std::vector<int32_t>(columns, 7)};
  write_logprobs(logits, token, count, {.values = out.values, .ids = out.ids, .rank = &out.rank});
  return out;
}

double log_total(const std::vector<float>& logits) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double total = 0;
  for (float logit : logits) total += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(total);
}

void expect_reference(std::vector<float> logits, TokenId token, int count) {
  const Written out = write(logits, token, count, static_cast<size_t>(count) + 1);
  for (float& logit : logits)
    if (std::isnan(logit)) logit = -kInfinity;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  order.insert(order.begin(), token);
  EXPECT_EQ(out.ids, order);
  const double total = log_total(logits);
  for (size_t i = 0; i < order.size(); ++i) {
    const double expected = static_cast<double>(logits[static_cast<size_t>(order[i])]) - total;
    if (std::isinf(expected)) {
      EXPECT_EQ(out.values[i], -kInfinity);
    } else {
      EXPECT_NEAR(static_cast<double>(out.values[i]), expected, 1e-6 * (1 + std::abs(expected)));
    }
  }
  const float own = logits[static_cast<size_t>(token)];
  EXPECT_EQ(out.rank,
            1 + std::count_if(logits.begin(), logits.end(), [&](float l) { return l > own; }));
}

TEST(LogprobsRow, EqualsTheReference) {
  for (Isa isa : available_isas()) {
    const IsaScope scope(isa);
    std::mt19937 random(1);
    for (int trial = 0; trial < 600; ++trial) {
      const size_t vocab = trial % 100 == 0 ? 151936 : 1 + random() % 2000;
      const auto logits = random_logits(random, vocab, random_shape(random));
      const size_t most = random() % 10 == 0 ? vocab : std::min<size_t>(vocab, 20);
      expect_reference(logits, static_cast<TokenId>(random() % vocab),
                       static_cast<int>(random() % (most + 1)));
    }
  }
}

TEST(LogprobsRow, ColumnsThatWereNotRequestedAreMarked) {
  const Written out = write({1, 3, 2}, 2, 1, 4);
  EXPECT_EQ(out.ids, (std::vector<int32_t>{2, 1, -1, -1}));
  EXPECT_EQ(out.values[2], -kInfinity);
  EXPECT_EQ(out.values[3], -kInfinity);
  EXPECT_EQ(out.rank, 2);
}

TEST(LogprobsRow, WithoutADistributionHasNoValues) {
  for (const auto& logits :
       {std::vector<float>{NAN, -kInfinity, NAN}, std::vector<float>{1, kInfinity, NAN}}) {
    const Written out = write(logits, 0, 2, 3);
    for (float value : out.values) EXPECT_EQ(value, -kInfinity);
    for (int32_t id : out.ids) EXPECT_TRUE(0 <= id && id < 3);
  }
}

}  // namespace
}  // namespace octavo::cpu
