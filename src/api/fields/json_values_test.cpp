#include "api/fields/json_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/testing/refusals.h"

namespace octavo::api {
namespace {

TEST(JsonValues, WholeNumbersMayBeWrittenWithAPoint) {
  EXPECT_EQ(to_integer(5.0, "n", 1, 10), 5);
  EXPECT_EQ(to_integer(Json(10u), "n", 1, 10), 10);
  EXPECT_EQ(refusal_of([] { to_integer(5.5, "n", 1, 10); }),
            "400 n: must be a whole number from 1 to 10, not 5.5");
}

TEST(JsonValues, IntegersStayWithinTheirBounds) {
  constexpr auto kLow = std::numeric_limits<int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(to_integer(kLow, "seed", kLow, kHigh), kLow);
  EXPECT_EQ(to_integer(kHigh, "seed", kLow, kHigh), kHigh);
  for (const char* text : {"9223372036854775808", "18446744073709551615", "1e19", "-1e19",
                           "9223372036854775808.0", "1e300"})
    EXPECT_NE(refusal_of([&] { to_integer(Json::parse(text), "seed", kLow, kHigh); }), "accepted")
        << text;
  EXPECT_NE(refusal_of([] { to_int(0, "n", 1, 64); }), "accepted");
  EXPECT_NE(refusal_of([] { to_int(65, "n", 1, 64); }), "accepted");
}

TEST(JsonValues, OtherTypesAreNotNumbers) {
  for (const char* text : {"true", "null", "\"1\"", "[1]", "{}"}) {
    const Json value = Json::parse(text);
    EXPECT_NE(refusal_of([&] { to_integer(value, "n", 0, 9); }), "accepted") << text;
    EXPECT_NE(refusal_of([&] { to_number(value, "n", 0, 9); }), "accepted") << text;
  }
  EXPECT_NE(refusal_of([] { to_number(std::numeric_limits<double>::quiet_NaN(), "p", 0, 1); }),
            "accepted");
  EXPECT_NE(refusal_of([] { to_number(std::numeric_limits<double>::infinity(), "p", 0, 1); }),
            "accepted");
  EXPECT_FLOAT_EQ(to_number(1, "p", 0, 1), 1.0F);
}

TEST(JsonValues, StringsTokensAndBooleansAreChecked) {
  EXPECT_EQ(to_string("abc", "stop", 3), "abc");
  EXPECT_EQ(refusal_of([] { to_string("abcd", "stop", 3); }),
            "400 stop: has 4 bytes; at most 3 are allowed");
  EXPECT_EQ(to_tokens(Json::parse("[0, 7]"), "ids"), (std::vector<TokenId>{0, 7}));
  for (const char* text : {"7", "[-1]", "[1.5]", "[\"a\"]", "[2147483648]", "[[1]]"})
    EXPECT_NE(refusal_of([&] { to_tokens(Json::parse(text), "ids"); }), "accepted") << text;
  EXPECT_TRUE(to_bool(true, "stream"));
  EXPECT_NE(refusal_of([] { to_bool(1, "stream"); }), "accepted");
}

TEST(JsonValues, AMessageShowsOnlyShortValues) {
  EXPECT_EQ(shown(3), "3");
  EXPECT_EQ(shown("hello"), "\"hello\"");
  EXPECT_EQ(shown(std::string(1000, 'x')), "a long string");
  EXPECT_EQ(shown(Json::array({1, 2})), "a list");
}

}  // namespace
}  // namespace octavo::api
