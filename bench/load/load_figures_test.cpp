#include "bench/load/load_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::bench {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// A successful request: tokens at `first`, then every `gap` seconds.
RequestRecord answer(double sent, double first, double gap, int tokens) {
  RequestRecord record{.prompt_tokens = 10, .output_tokens = tokens, .sent = sent, .first = first};
  for (int i = 0; i < tokens; ++i) record.chunks.push_back(first + gap * i);
  record.last = record.chunks.back();
  record.failure.clear();
  return record;
}

RequestRecord failure(const char* reason) { return {.prompt_tokens = 99, .failure = reason}; }

TEST(LoadFigures, CountOnlySuccessfulRequests) {
  const LoadResult result{.seconds = 4,
                          .records = {answer(0, 1, 0.5, 3), failure("late"), answer(1, 2, 0.25, 5),
                                      failure("early"), failure("late")}};
  const LoadFigures figures = load_figures(result, {}, {});
  EXPECT_EQ(figures.completed, 2u);
  EXPECT_EQ(figures.failed, 3u);
  EXPECT_EQ(figures.input_tokens, 20u);
  EXPECT_EQ(figures.output_tokens, 8u);
  EXPECT_DOUBLE_EQ(figures.per_second(figures.output_tokens), 2);
  ASSERT_EQ(figures.failures.size(), 2u);
  EXPECT_EQ(figures.failures[0].reason, "late");
  EXPECT_EQ(figures.failures[0].requests, 2u);
}

TEST(LoadFigures, SummariseLatencies) {
  const LoadResult result{.seconds = 4, .records = {answer(0, 1, 0.5, 3), answer(1, 4, 0.1, 1)}};
  const LoadFigures figures = load_figures(result, {0, 25, 99, 100}, {});
  EXPECT_DOUBLE_EQ(figures.ttft.mean, 2);  // of 1 and 3
  EXPECT_DOUBLE_EQ(figures.ttft.median, 2);
  EXPECT_DOUBLE_EQ(figures.ttft.deviation, 1);
  EXPECT_THAT(figures.ttft.percentiles, ElementsAre(1, 1.5, DoubleNear(2.98, 1e-9), 3));
  EXPECT_DOUBLE_EQ(figures.tpot.mean, 0.5);  // undefined for an answer of one token
  EXPECT_THAT(figures.itl.percentiles, ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_DOUBLE_EQ(figures.e2el.mean, 2.5);  // of 2 and 3
}

TEST(LoadFigures, FindThePeaksBySecondsSinceTheFirstRequest) {
  // Tokens 1.5, 1.75, 2, 2.25 and 2.75, 3.75 become, counted from 0.5: 0 | 1 1.25 1.5 1.75 | 2.25
  // | 3.25
  const LoadResult result{.seconds = 4,
                          .records = {answer(0.5, 1.5, 0.25, 4), answer(1.5, 2.75, 1, 2)}};
  const LoadFigures figures = load_figures(result, {}, {});
  EXPECT_EQ(figures.peak_output_tokens, 4);
  EXPECT_EQ(figures.peak_concurrent, 2u);
  EXPECT_THAT(output_by_second(result), ElementsAre(0, 2, 3, 1));
}

TEST(LoadFigures, PeakIsNotBelowTheMean) {
  RequestRecord grouped = answer(0, 0.5, 0.5, 4);
  grouped.output_tokens = 40;  // ten tokens per chunk, as a server under load sends them
  EXPECT_EQ(load_figures({.seconds = 2, .records = {grouped}}, {}, {}).peak_output_tokens, 20);
  EXPECT_THAT(output_by_second({.seconds = 2, .records = {grouped}}), ElementsAre(10, 20, 10));
  const LoadResult brief{.seconds = 0.5, .records = {answer(0, 0.1, 0.1, 4)}};
  EXPECT_EQ(load_figures(brief, {}, {}).peak_output_tokens, 8);
}

TEST(LoadFigures, GoodRequestsMeetEveryLimit) {
  const LoadResult result{.seconds = 2,
                          .records = {answer(0, 1, 0.5, 3), answer(0, 1, 0.25, 3),
                                      answer(0, 2, 0.25, 3), failure("late")}};
  EXPECT_EQ(load_figures(result, {}, {}).good, 3u);
  EXPECT_EQ(load_figures(result, {}, {.ttft = 1}).good, 2u);
  EXPECT_EQ(load_figures(result, {}, {.ttft = 1, .tpot = 0.3}).good, 1u);
  EXPECT_EQ(load_figures(result, {}, {.e2el = 2}).good, 2u);
  EXPECT_EQ(load_figures(result, {}, {.ttft = 0.5}).good, 0u);
}

TEST(LoadFigures, AreZeroWithoutRequests) {
  const LoadFigures figures =
      load_figures({.seconds = 1, .records = {failure("refused")}}, {50, 99}, {});
  EXPECT_EQ(figures.completed, 0u);
  EXPECT_EQ(figures.peak_concurrent, 0u);
  EXPECT_THAT(figures.ttft.percentiles, ElementsAre(0, 0));
}

}  // namespace
}  // namespace octavo::bench
