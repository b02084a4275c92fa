#include "cli/parse/number_check.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::HasSubstr;

TEST(NumberCheck, ReadsSuffixesAsVllmDoes) {
  EXPECT_EQ(parse_whole_number("4096"), 4096);
  EXPECT_EQ(parse_whole_number("100k"), 100'000);
  EXPECT_EQ(parse_whole_number("4K"), 4096);
  EXPECT_EQ(parse_whole_number("25.6k"), 25'600);
  EXPECT_EQ(parse_whole_number("1m"), 1'000'000);
  EXPECT_EQ(parse_whole_number("1G"), int64_t{1} << 30);
  EXPECT_EQ(parse_whole_number("-1"), -1);
  for (const char* wrong : {"", "k", "4.5", "2.5K", "1e3", "0x10", "12x", "99999999999999999999"})
    EXPECT_EQ(parse_whole_number(wrong), std::nullopt) << wrong;
}

TEST(NumberCheck, SaysWhatIsAllowed) {
  std::string text = "100k";
  EXPECT_EQ(context_length()(text), "");
  EXPECT_EQ(text, "100000");
  text = "auto";
  EXPECT_EQ(context_length()(text), "");
  EXPECT_EQ(text, "0");
  text = "many";
  EXPECT_THAT(context_length()(text), HasSubstr("\"many\" is not a whole number; use at least 1"));
  text = "0";
  EXPECT_EQ(whole_number(1, 64)(text), "0 is out of range; use 1 to 64");
  text = "80000";
  EXPECT_THAT(port_number()(text), HasSubstr("use 1 to 65535"));
  text = "-1";
  EXPECT_EQ(real_number(0, true)(text), "-1 is out of range; use at least 0");
}

}  // namespace
}  // namespace octavo
