#include "bench/load/sse_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace octavo::bench {
namespace {

using testing::ElementsAre;

// A stream with every variant: comments, CR LF, CR, no space after the colon, another field, two
// data lines in one event, an empty event and an unterminated event at the end.
constexpr std::string_view kStream =
    ": hello\n\n"
    "data: {\"a\": 1}\n\n"
    "data:second\r\n\r\n"
    "event: chunk\rdata: third\r\r"
    ":ping\n"
    "data: line one\r\ndata:  line two\r\n\r\n"
    "data:\n\n"
    "id: 7\n\n"
    "data: [DONE]\n\n"
    "data: never ended\n";

std::vector<std::string> events_of(std::initializer_list<std::string_view> pieces) {
  SseParser parser;
  std::vector<std::string> events;
  for (const std::string_view piece : pieces)
    parser.feed(piece, [&](std::string_view data) { events.emplace_back(data); });
  return events;
}

const auto kEvents =
    ElementsAre("{\"a\": 1}", "second", "third", "line one\n line two", "", "[DONE]");

TEST(SseParser, FindsEveryEventInOnePiece) { EXPECT_THAT(events_of({kStream}), kEvents); }

TEST(SseParser, AcceptsAStreamSplitAnywhere) {
  for (size_t a = 0; a <= kStream.size(); ++a) {
    for (size_t b = a; b <= kStream.size(); ++b) {
      EXPECT_THAT(events_of({kStream.substr(0, a), kStream.substr(a, b - a), kStream.substr(b)}),
                  kEvents)
          << "cut at " << a << " and " << b;
    }
  }
}

TEST(SseParser, AcceptsSingleBytes) {
  SseParser parser;
  std::vector<std::string> events;
  for (size_t i = 0; i < kStream.size(); ++i)
    parser.feed(kStream.substr(i, 1), [&](std::string_view data) { events.emplace_back(data); });
  EXPECT_THAT(events, kEvents);
}

TEST(SseParser, ReportsAnEventWithItsLastByteAndNotBefore) {
  EXPECT_THAT(events_of({"data: x\n"}), ElementsAre());
  EXPECT_THAT(events_of({"data: x\n", "\n"}), ElementsAre("x"));
  EXPECT_THAT(events_of({"data: x\r\n", "\r"}), ElementsAre("x"));
}

}  // namespace
}  // namespace octavo::bench
