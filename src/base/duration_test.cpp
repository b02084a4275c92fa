#include "base/duration.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Duration, ReadsGosForms) {
  EXPECT_EQ(parse_duration("300"), 300);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("-1"), -1);
  EXPECT_EQ(parse_duration("+2.5s"), 2.5);
  EXPECT_EQ(parse_duration("5m"), 300);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("-1h30m"), -5400);
  EXPECT_EQ(parse_duration("500ms"), 0.5);
}

TEST(Duration, RefusesOtherText) {
  for (const char* bad : {"", "-", "m", "5x", "5m3", "3 m", "1..5s", "soon", "1e3", "0x10", "--1"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

}  // namespace
}  // namespace octavo
