#include "cli/client/running_server.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "cli/client/metrics_text.h"

namespace octavo {
namespace {

using std::chrono::seconds;

constexpr const char* kMetrics =
    "# HELP vllm:num_requests_running x\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"a\"} 2\n"
    "vllm:num_requests_running{model_name=\"b\\\"}\",engine=\"0\"} 3.0e+00\n"
    "vllm:generation_tokens_total{model_name=\"a\"} 150\n"
    "vllm:kv_cache_usage_perc{model_name=\"a\"} 0.25\n"
    "plain 4\n"
    "no value\n"
    "open{label=\"x\n";

TEST(RunningServer, SamplesOfMetricsAreReadWithTheirModel) {
  const std::vector<MetricSample> samples = read_metrics(kMetrics);
  ASSERT_EQ(samples.size(), 5u);
  EXPECT_EQ(sum_of(samples, "vllm:num_requests_running", "a"), 2);
  EXPECT_EQ(sum_of(samples, "vllm:num_requests_running", "b\"}"), 3);
  EXPECT_EQ(sum_of(samples, "plain", ""), 4);
}

TEST(RunningServer, TimesAreReadWithAndWithoutAnOffset) {
  const auto utc = parse_rfc3339("2026-11-18T06:40:00.123456789Z");
  ASSERT_TRUE(utc);
  EXPECT_EQ(utc, parse_rfc3339("2026-11-18T07:40:00+01:00"));
  EXPECT_EQ(utc, parse_rfc3339("2026-11-18T04:40:00.5-02:00"));
  for (const char* bad : {"", "soon", "2026-13-18T06:40:00Z", "2026-11-18T06:40:00", "2026-11-18"})
    EXPECT_FALSE(parse_rfc3339(bad));
}

TEST(RunningServer, RunningModelsAreShownAsATable) {
  const auto now = *parse_rfc3339("2026-11-18T06:40:00Z");
  const std::string ps = R"({"models":[{"name":"a","size":2147483648,"context_length":4096,)"
                         R"("expires_at":"2026-11-18T06:45:00Z"},{"name":"b\"}","size":1048576,)"
                         R"("expires_at":"2318-01-01T00:00:00Z"}]})";
  ServerReading before{.models = running_models(ps, kMetrics), .at = {}};
  before.models[0].generated = 100;
  const ServerReading after{.models = running_models(ps, kMetrics), .at = before.at + seconds(2)};
  EXPECT_EQ(table_of(before, after, now),
            "NAME        SIZE   CONTEXT  RUNNING  WAITING  TOKENS/S  KV USE  UNTIL\n"
            "a       2.00 GiB      4096        2        0      25.0     25%  5 min\n"
            "b\"}     1.00 MiB         0        3        0       0.0      0%  for ever\n");
}

TEST(RunningServer, AnAnswerOfAnotherKindIsRefused) {
  for (const char* bad : {"", "[]", "{}", R"({"models":{}})", R"({"models":[{"name":7}]})"})
    EXPECT_THROW(running_models(bad, ""), SetupError);
}

}  // namespace
}  // namespace octavo
