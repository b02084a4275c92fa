#include "api/fields/json_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <utility>

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

std::string list_of(int count, const char* value) {
  std::string body = "{\"a\":[";
  for (int i = 0; i < count; ++i) body += fmt::format("{}{}", i == 0 ? "" : ",", value);
  return body + "]}";
}

TEST(JsonText, TimeGrowsWithTheLengthOfAList) {
  const std::pair<int, const char*> lists[] = {
      {100'000, "{}"}, {400'000, "{}"}, {400'000, "[]"}, {200'000, R"({"b":{}})"}};
  for (const auto& [count, value] : lists) {
    const std::string body = list_of(count, value);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(parse_object(body)["a"].size(), static_cast<size_t>(count));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kSanitized ? 20 : 1))
        << count << " times " << value;
  }
}

TEST(JsonText, ValuesAreBounded) {
  // The object and the list are values too.
  EXPECT_EQ(parse_refusal(list_of(kJsonValues - 2, "1")), "accepted");
  EXPECT_EQ(parse_refusal(list_of(kJsonValues - 1, "1")),
            "400 the body has too many values; at most 500000 are allowed");
  EXPECT_NE(parse_refusal(list_of(2'600'000, "\"\"")), "accepted");
}

// A random document; `depth` is what may still be nested.
Json random_value(std::mt19937& random, int depth) {
  static const Json scalars = Json::parse(
      R"([null, true, -7, 18446744073709551615, 1.5e-3, "", "a\"b\\c", "\u20ac\ud83d\ude00"])");
  const auto kind = random() % (depth > 0 ? 4 : 2);
  if (kind < 2) return scalars[random() % scalars.size()];
  Json value = kind == 2 ? Json::array() : Json::object();
  for (auto left = random() % 6; left > 0; --left) {
    Json part = random_value(random, depth - 1);
    if (kind == 2) {
      value.push_back(std::move(part));
    } else {
      value[fmt::format("k{}", random() % 8)] = std::move(part);
    }
  }
  return value;
}

TEST(JsonText, ReadsWhatTheLibraryReads) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string text = Json({{"z", random_value(random, 6)}, {"a", i}}).dump();
    EXPECT_EQ(parse_object(text), Json::parse(text));
    EXPECT_EQ(parse_object(text).dump(), text);
    const std::string cut = text.substr(0, random() % text.size());
    EXPECT_FALSE(Json::accept(cut));
    EXPECT_NE(parse_refusal(cut), "accepted") << cut;
  }
}

TEST(JsonText, TheLastOfEqualKeysCounts) {
  const std::string body = R"({"a": {"x": 1}, "b": 2, "a": [3]})";
  EXPECT_EQ(parse_object(body).dump(), R"({"a":[3],"b":2})");
  EXPECT_EQ(parse_object(body), Json::parse(body));
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
