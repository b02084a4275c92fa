#include "base/log_text.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::string plain(std::string_view text) {
  std::string out;
  append_log_text(out, text);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out;
  append_log_quoted(out, text);
  return out;
}

TEST(LogText, ValidTextIsKept) {
  for (const std::string_view text :
       {"", "plain text", "\"quoted\" \\", "\u00a0\u00e9\u20ac\U0001f600"}) {
    EXPECT_TRUE(is_clean_log_text(text)) << text;
    EXPECT_EQ(plain(text), text);
  }
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
}

TEST(LogText, ControlCharactersAreEscaped) {
  EXPECT_EQ(plain("a\nb\x1b[31m\x7f"), "a\\nb\\u001b[31m\\u007f");
  EXPECT_EQ(plain("\u0080\u009b2J\u00a0"), "\\u0080\\u009b2J\u00a0");  // C1: CSI in one character
  EXPECT_EQ(quoted(std::string_view("\0\t", 2)), R"("\u0000\u0009")");
  for (const std::string_view text : {"\n", "\x1b", "\x7f", "\u0085"})
    EXPECT_FALSE(is_clean_log_text(text));
}

TEST(LogText, InvalidBytesAreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(plain("a\xff"
                  "b"),
            "a" + bad + "b");
  EXPECT_EQ(plain("\x9b"), bad);                                // an 8-bit CSI
  EXPECT_EQ(plain("\xc2"), bad);                                // cut off
  EXPECT_EQ(plain("\xc0\xaf"), bad + bad);                      // overlong
  EXPECT_EQ(plain("\xe0\x80\xaf"), bad + bad + bad);            // overlong
  EXPECT_EQ(plain("\xed\xa0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(plain("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(plain("\xe2\x82"
                  "A"),
            bad + bad + "A");
  for (int byte = 0x80; byte < 0x100; ++byte)
    EXPECT_FALSE(is_clean_log_text(std::string(1, static_cast<char>(byte)))) << byte;
}

}  // namespace
}  // namespace octavo
