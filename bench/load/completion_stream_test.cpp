#include "bench/load/completion_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "bench/load/server_error.h"

namespace octavo::bench {
namespace {

using testing::ElementsAre;

// The n-th event arrives after n seconds.
RequestRecord received(std::initializer_list<const char*> events, const std::string& end = {}) {
  RequestRecord record;
  CompletionStream stream(record);
  double seconds = 0;
  for (const char* event : events)
    stream.receive("data: " + std::string(event) + "\n\n", seconds += 1);
  stream.finish(end);
  return record;
}

constexpr auto kText = R"({"choices": [{"text": "a", "finish_reason": null}]})";
constexpr auto kPart = R"({"choices": [{"text": "", "finish_reason": null}]})";
constexpr auto kStop = R"({"choices": [{"text": "", "finish_reason": "stop"}]})";
constexpr auto kUsage = R"({"choices": [], "usage": {"completion_tokens": 7}})";

TEST(CompletionStream, TakesTimesFromChunksAndCountsFromUsage) {
  const RequestRecord record = received({kText, kPart, kText, kStop, kUsage, "[DONE]"});
  EXPECT_TRUE(record.answered()) << record.failure;
  EXPECT_EQ(record.first, 1);
  EXPECT_EQ(record.last, 4);
  EXPECT_THAT(record.chunks, ElementsAre(1, 2, 3));  // the last chunk has only the finish reason
  EXPECT_EQ(record.output_tokens, 7);
  EXPECT_FALSE(record.chunks_counted);
  EXPECT_DOUBLE_EQ(record.tpot(), 0.5);
}

TEST(CompletionStream, CountsChunksWhenThereIsNoUsage) {
  const RequestRecord record = received({kText, kText, kStop, "[DONE]"});
  EXPECT_EQ(record.output_tokens, 2);
  EXPECT_TRUE(record.chunks_counted);
}

TEST(CompletionStream, TheRoleChunkOfAChatCarriesNoToken) {
  const RequestRecord record = received({
      R"({"choices": [{"delta": {"role": "assistant", "content": ""}}]})",
      R"({"choices": [{"delta": {"content": "a"}}]})",
      R"({"choices": [{"delta": {"reasoning_content": "b"}}]})",
      R"({"choices": [{"delta": {}, "finish_reason": "length"}]})",
  });
  EXPECT_TRUE(record.answered()) << record.failure;
  EXPECT_EQ(record.first, 1);
  EXPECT_THAT(record.chunks, ElementsAre(2, 3));
}

TEST(CompletionStream, FailsWithTheServersMessage) {
  EXPECT_EQ(received({kText, R"({"error": {"message": "out of pages"}})", "[DONE]"}).failure,
            "error event: out of pages");
  EXPECT_EQ(received({R"({"error": "busy"})"}, "closed").failure, "error event: busy");
}

TEST(CompletionStream, FailsIfTheStreamEndsEarly) {
  EXPECT_EQ(received({kText}, "connection closed early").failure, "connection closed early");
  EXPECT_EQ(received({kText}).failure, "the stream ended before the response was complete");
  EXPECT_EQ(received({"[DONE]"}).failure, "the response contains no choices");
  EXPECT_EQ(received({"hello", kText, "[DONE]"}).failure, "an event is not a JSON object");
}

TEST(CompletionStream, IgnoresTransportErrorsAfterDone) {
  EXPECT_TRUE(received({kText, kStop, "[DONE]"}, "connection closed early").answered());
}

TEST(ErrorText, IsOneLine) {
  EXPECT_EQ(error_text(R"({"error": {"message": "too\nlong", "code": 400}})"), "too long");
  EXPECT_EQ(error_text(R"({"object": "error", "message": "no"})"), "no");
  EXPECT_EQ(error_text(R"({"detail": [{"msg": "x"}]})"), R"([{"msg":"x"}])");
  EXPECT_EQ(error_text("Bad Gateway\r\n"), "Bad Gateway");
  EXPECT_LT(error_text(std::string(5000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace octavo::bench
