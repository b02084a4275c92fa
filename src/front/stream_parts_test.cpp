#include "front/stream_parts.h"

#include <gtest/gtest.h>

#include "api/fields/json_text.h"
#include "base/error.h"

namespace octavo::front {
namespace {

using api::Json;

constexpr std::string_view kStream =
    "data: {\"a\":1}\n\n: octavo start "
    "{\"resume\":{\"id\":\"x\"},\"resume_token_ids\":[[7],[]]}\n\n"
    ": octavo tokens 0 1\n\n"
    ": keep-alive\n\n"
    ": octavo tokens 1 2 3\n\n"
    "event: b\ndata: {\"b\":\": octavo tokens 0 9\"}\n\n: octavo tokens 0 4\n\n"
    "data: [DONE]\n\n";
constexpr std::string_view kVisible =
    "data: {\"a\":1}\n\nevent: b\ndata: {\"b\":\": octavo tokens 0 9\"}\n\ndata: [DONE]\n\n";

TEST(StreamParts, RemovesCommentsHoweverTheStreamIsDivided) {
  for (size_t size = 1; size <= kStream.size(); ++size) {
    AnswerSoFar answer;
    StreamParts parts(answer);
    std::string seen;
    for (size_t at = 0; at < kStream.size(); at += size) {
      parts.put(kStream.substr(at, size));
      seen += parts.take();
    }
    seen += parts.take_last();
    ASSERT_EQ(seen, kVisible) << size;
    ASSERT_EQ(answer.members(), R"("resume":{"id":"x"},"resume_token_ids":[[7,1,4],[2,3]])");
  }
}

// What was taken and the tokens that were noted belong together at every byte.
TEST(StreamParts, PartsAreTakenWithTheirTokens) {
  size_t cuts = 0;
  for (size_t cut = 0; cut < kStream.size(); ++cut) {
    AnswerSoFar answer;
    StreamParts parts(answer);
    parts.put(kStream.substr(0, cut));
    const std::string seen = parts.take();
    if (!answer.can_resume()) {
      ASSERT_EQ(seen, "");
      continue;
    }
    const Json members = Json::parse("{" + answer.members() + "}");
    const size_t noted = members["resume_token_ids"][0].size();
    ASSERT_EQ(seen, noted == 1   ? ""
                    : noted == 2 ? "data: {\"a\":1}\n\n"
                                 : std::string(kVisible.substr(0, kVisible.find("data: [DONE]"))));
    ++cuts;
  }
  EXPECT_GT(cuts, 50u);
}

TEST(StreamParts, RefusesNotesThatItDoesNotUnderstand) {
  for (const char* line :
       {": octavo tokens 0 1\n", ": octavo start {}\n", ": octavo start x\n",
        ": octavo start {\"resume\":{},\"resume_token_ids\":[[]]}\n: octavo tokens 1 1\n",
        ": octavo start {\"resume\":{},\"resume_token_ids\":[[]]}\n: octavo tokens 0 x\n",
        ": octavo start {\"resume\":{},\"resume_token_ids\":[[]]}\n: octavo tokens -1 1\n"}) {
    AnswerSoFar answer;
    StreamParts parts(answer);
    EXPECT_THROW(parts.put(line), RequestError) << line;
  }
}

}  // namespace
}  // namespace octavo::front
