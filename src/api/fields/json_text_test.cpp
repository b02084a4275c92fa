#include "api/fields/json_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"

namespace octavo::api {
namespace {

std::string refusal_of(const std::string& body) {
  try {
    parse_object(body);
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "taken";
}

TEST(JsonText, OnlyOneObjectIsTaken) {
  EXPECT_EQ(parse_object(R"({"b": 1, "a": 2})").dump(), R"({"b":1,"a":2})");
  for (const char* body :
       {"", "[]", "1", "null", "{", "{}{}", "{} x", R"({"a": "\ud800"})", R"({"a": 1e999})"})
    EXPECT_NE(refusal_of(body), "taken") << body;
  EXPECT_NE(refusal_of("{\"a\": \"\xff\"}"), "taken");
}

TEST(JsonText, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(refusal_of(nested(100)), "taken");
  EXPECT_NE(refusal_of(nested(200)), "taken");
  EXPECT_NE(refusal_of("{\"a\":" + std::string(100'000, '[')), "taken");
}

// Objects keep the order of their keys, so looking for one takes as long as there are keys.
TEST(JsonText, KeysOfAnObjectAreBounded) {
  const auto with_keys = [](int count) {
    std::string body = "{\"k0\":[{},{}]";
    for (int i = 1; i < count; ++i) body += fmt::format(R"(,"k{}":{{}})", i);
    return body + "}";
  };
  EXPECT_EQ(refusal_of(with_keys(kJsonKeys)), "taken");
  EXPECT_NE(refusal_of(with_keys(kJsonKeys + 1)), "taken");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_NE(refusal_of(with_keys(300'000)), "taken");
  EXPECT_NE(refusal_of("{\"metadata\":[1," + with_keys(300'000) + "]}"), "taken");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST(JsonText, ErrorsDoNotRepeatALongBody) {
  EXPECT_LT(refusal_of("{\"a\": \"" + std::string(100'000, 'x')).size(), 500u);
  EXPECT_LT(refusal_of("{\"a\": \"" + std::string(100'000, '\x01')).size(), 500u);
}

TEST(JsonText, StringsAreEscapedAndAlwaysUtf8) {
  EXPECT_EQ(json_string("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(json_string("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Json::parse(json_string(std::string_view("\0", 1))), std::string(1, '\0'));
}

}  // namespace
}  // namespace octavo::api
