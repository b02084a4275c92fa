#include "api/fields/json_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "api/testing/refusals.h"
#include "base/testing/sanitized.h"

namespace octavo::api {
namespace {

std::string parse_refusal(const std::string& body) {
  return refusal_of([&] { parse_object(body); });
}

TEST(JsonText, OnlyASingleObjectIsAccepted) {
  EXPECT_EQ(parse_object(R"({"b": 1, "a": 2})").dump(), R"({"b":1,"a":2})");
  for (const char* body :
       {"", "[]", "1", "null", "{", "{}{}", "{} x", R"({"a": "\ud800"})", R"({"a": 1e999})"})
    EXPECT_NE(parse_refusal(body), "accepted") << body;
  EXPECT_NE(parse_refusal("{\"a\": \"\xff\"}"), "accepted");
}

TEST(JsonText, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(parse_refusal(nested(100)), "accepted");
  EXPECT_NE(parse_refusal(nested(200)), "accepted");
  EXPECT_NE(parse_refusal("{\"a\":" + std::string(100'000, '[')), "accepted");
}

// Objects keep key order, so lookup time grows with the number of keys.
TEST(JsonText, KeysOfAnObjectAreBounded) {
  const auto with_keys = [](int count) {
    std::string body = "{\"k0\":[{},{}]";
    for (int i = 1; i < count; ++i) body += fmt::format(R"(,"k{}":{{}})", i);
    return body + "}";
  };
  EXPECT_EQ(parse_refusal(with_keys(kJsonKeys)), "accepted");
  EXPECT_NE(parse_refusal(with_keys(kJsonKeys + 1)), "accepted");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_NE(parse_refusal(with_keys(300'000)), "accepted");
  EXPECT_NE(parse_refusal("{\"metadata\":[1," + with_keys(300'000) + "]}"), "accepted");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kSanitized ? 60 : 5));
}

TEST(JsonText, ErrorsDoNotRepeatALongBody) {
  EXPECT_LT(parse_refusal("{\"a\": \"" + std::string(100'000, 'x')).size(), 500u);
  EXPECT_LT(parse_refusal("{\"a\": \"" + std::string(100'000, '\x01')).size(), 500u);
}

TEST(JsonText, StringsAreEscapedAndAlwaysUtf8) {
  EXPECT_EQ(json_string("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(json_string("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Json::parse(json_string(std::string_view("\0", 1))), std::string(1, '\0'));
}

}  // namespace
}  // namespace octavo::api
