#include "server/tracing/request_span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octavo::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

RequestSpan finished_span() {
  const RequestSpan::Clock::time_point arrival(seconds(100));
  return {.request_id = "r",
          .model = "m",
          .sampling = RequestSpan::Sampling{.temperature = 0.7F, .max_tokens = 8},
          .sequences = 1,
          .arrival = arrival,
          .end = arrival + milliseconds(900),
          .work = RequestSpan::Work{.scheduled = arrival + milliseconds(100),
                                    .first_token = arrival + milliseconds(300),
                                    .last_token = arrival + milliseconds(800)}};
}

nlohmann::json json_of(const RequestSpan& span) {
  // The steady clock is 1,000 s behind Unix time.
  return nlohmann::json::parse(
      span_json(span, {.steady = RequestSpan::Clock::time_point(seconds(101)),
                       .system = std::chrono::system_clock::time_point(seconds(1101))}));
}

TEST(RequestSpan, HasUnixTimesAndLatenciesInSeconds) {
  const nlohmann::json json = json_of(finished_span());
  EXPECT_EQ(json["start_ns"], 1'100'000'000'000);
  EXPECT_EQ(json["end_ns"], 1'100'900'000'000);
  const auto& attributes = json["attributes"];
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.e2e"], 0.9);
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.time_in_queue"], 0.1);
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.time_to_first_token"], 0.3);
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.time_in_model_prefill"], 0.2);
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.time_in_model_decode"], 0.5);
  EXPECT_DOUBLE_EQ(attributes["gen_ai.latency.time_in_model_inference"], 0.7);
  EXPECT_EQ(json["children"][1]["name"], "prefill");
  EXPECT_EQ(json["children"][1]["start_ns"], 1'100'100'000'000);
}

TEST(RequestSpan, WritesFloatsAsTheRequestDid) {
  EXPECT_EQ(json_of(finished_span())["attributes"]["gen_ai.request.temperature"].dump(), "0.7");
}

TEST(RequestSpan, LeavesOutWhatTheRequestDidNotReach) {
  RequestSpan span = finished_span();
  span.work.reset();
  span.sampling.reset();
  span.error = "the client disconnected";
  const nlohmann::json json = json_of(span);
  EXPECT_EQ(json["error"], "the client disconnected");
  EXPECT_TRUE(json["children"].empty());
  EXPECT_THAT(json["attributes"].dump(), Not(HasSubstr("time_in_queue")));
  EXPECT_THAT(json["attributes"].dump(), Not(HasSubstr("temperature")));
}

TEST(RequestSpan, KeepsAnyBytesOfAHeader) {
  RequestSpan span = finished_span();
  span.caller.traceparent = "\xff";
  EXPECT_EQ(json_of(span)["traceparent"], "\xEF\xBF\xBD");
}

TEST(TraceHeaders, JoinStatesAndRefuseSeveralParents) {
  HttpRequest request{
      .headers = {{"TraceParent", "p"}, {"tracestate", "a=1"}, {"Tracestate", "b=2"}}};
  EXPECT_EQ(trace_headers(request).traceparent, "p");
  EXPECT_EQ(trace_headers(request).tracestate, "a=1,b=2");
  request.headers.emplace_back("traceparent", "p");
  EXPECT_EQ(trace_headers(request).traceparent, "");
}

}  // namespace
}  // namespace octavo::server
