#include "text/utf8.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using namespace std::string_literals;

// Each expectation is CPython 3.11's result of bytes.decode("utf-8", "replace").
TEST(Utf8, ReplacesWhatPythonReplaces) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(replace_invalid_utf8("plain \xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80"),
            "plain \xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80");
  EXPECT_EQ(replace_invalid_utf8("a\0b"s), "a\0b"s);
  EXPECT_EQ(replace_invalid_utf8("\x80"), r);
  EXPECT_EQ(replace_invalid_utf8("\xFF\xFE"), r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r);          // overlong '/'
  EXPECT_EQ(replace_invalid_utf8("\xE0\x80\xAF"), r + r + r);  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xF0\x80\x80\xAF"), r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xE4\xBD"), r);  // cut at the end
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), r);
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98x"), r + "x");  // cut by another character
  EXPECT_EQ(replace_invalid_utf8("\xE4\xE4\xBD\xA0"), r + "\xE4\xBD\xA0");
}

TEST(Utf8, ValidityAgreesWithReplacement) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      EXPECT_EQ(is_valid_utf8(bytes), replace_invalid_utf8(bytes) == bytes);
      EXPECT_TRUE(is_valid_utf8(replace_invalid_utf8(bytes)));
    }
  }
}

TEST(Utf8, CountsCodePoints) { EXPECT_EQ(count_code_points("a\xC3\xA9\xF0\x9F\x98\x80"), 3u); }

TEST(Utf8, StripsPythonsWhiteSpace) {
  EXPECT_EQ(strip_space("\x1C\t a b\xC2\xA0\xE3\x80\x80\n"), "a b");
  EXPECT_EQ(strip_space_right(" a \xE2\x80\x8B"), " a \xE2\x80\x8B");  // U+200B is not white space
  EXPECT_EQ(strip_space(" \n"), "");
}

}  // namespace
}  // namespace octavo
