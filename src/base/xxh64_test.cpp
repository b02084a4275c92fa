#include "base/xxh64.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace octavo {
namespace {

uint64_t hash_of(const std::string& text) { return xxh64(std::as_bytes(std::span(text))); }

TEST(Xxh64, GivesThePublishedValues) {
  EXPECT_EQ(hash_of(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash_of("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(hash_of("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(hash_of("No"
                    "body inspects the spammish repetition"),
            0xFBCEA83C8A378BF1u);
}

TEST(Xxh64, ChangesWithEveryBit) {
  std::string text(100, 'x');
  const uint64_t before = hash_of(text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(hash_of(text), before) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace octavo
