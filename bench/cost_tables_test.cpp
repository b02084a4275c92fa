#include "bench/cost_tables.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo::bench {
namespace {

const MeasuredSteps kSteps = {.prefill = {{16, 0.01}, {512, 0.3}},
                              .decode = {{1, 0.020}, {8, 0.027}, {32, 0.075}},
                              .context = 128,
                              .seconds_per_cached_token = 1e-6};

TEST(DecodeSeconds, AreLinearBetweenAndAboveTheMeasuredBatchSizes) {
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 1, 128), 0.020);
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 8, 128), 0.027);
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 4.5, 128), 0.0235);
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 64, 128), 0.075 + 32 * 0.002);
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 0.25, 128), 0.020);
}

TEST(DecodeSeconds, GrowWithTheContextOfEverySequence) {
  EXPECT_DOUBLE_EQ(decode_seconds(kSteps, 8, 1128), 0.027 + 8 * 1000e-6);
}

// Linear in both axes, as the mocker reads it. The axes ascend.
double interpolated(const std::vector<NpzArray>& tables, double cached, double context) {
  const auto cell = [](const std::vector<double>& axis, double at) {
    const auto upper = std::ranges::upper_bound(axis, at) - axis.begin();
    return std::clamp<std::ptrdiff_t>(upper, 1, std::ssize(axis) - 1) - 1;
  };
  const auto &x = tables[2].values, &y = tables[3].values, &table = tables[4].values;
  const auto i = static_cast<size_t>(cell(x, cached)), j = static_cast<size_t>(cell(y, context));
  const double u = (cached - x[i]) / (x[i + 1] - x[i]), v = (context - y[j]) / (y[j + 1] - y[j]);
  const auto at = [&](size_t line, size_t column) { return table[line * y.size() + column]; };
  return (1 - u) * ((1 - v) * at(i, j) + v * at(i, j + 1)) +
         u * ((1 - v) * at(i + 1, j) + v * at(i + 1, j + 1));
}

TEST(CostTables, GiveTheMeasuredTimesWhenInterpolated) {
  const auto tables = cost_tables(kSteps);
  ASSERT_EQ(tables.size(), 5u);
  EXPECT_EQ(tables[0].name, "prefill_isl");
  EXPECT_EQ(tables[0].values, (std::vector<double>{16, 512}));
  EXPECT_EQ(tables[1].name, "prefill_ttft_ms");
  EXPECT_EQ(tables[1].values, (std::vector<double>{10, 300}));
  EXPECT_EQ(tables[2].name, "decode_active_kv_tokens");
  EXPECT_EQ(tables[3].name, "decode_context_length");
  EXPECT_EQ(tables[4].name, "decode_itl");
  const std::vector<std::pair<int, int>> cases = {
      {1, 100}, {3, 700}, {8, 128}, {20, 3000}, {48, 900}};
  for (const auto& [batch, context] : cases) {
    const double exact = decode_seconds(kSteps, batch, context) * 1e3;
    EXPECT_NEAR(interpolated(tables, batch * context, context), exact, 0.05 * exact)
        << batch << " sequences of " << context;
  }
}

}  // namespace
}  // namespace octavo::bench
