#include "base/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

TEST(Units, BytesAreShownWithThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(98362432), "93.8 MiB");
  EXPECT_EQ(format_bytes(24ull << 30), "24.0 GiB");
}

TEST(Units, CountsUseTheUnitsOfModelNames) {
  EXPECT_EQ(format_count(820), "820");
  EXPECT_EQ(format_count(134515008), "134.5M");
  EXPECT_EQ(format_count(7241732096), "7.24B");
}

TEST(Units, SizesAreReadWithTheirUnits) {
  EXPECT_EQ(parse_bytes("4GiB", "--kv-memory"), 4ull << 30);
  EXPECT_EQ(parse_bytes("1.5 GiB", "--kv-memory"), 3ull << 29);
  EXPECT_EQ(parse_bytes("512MB", "--kv-memory"), 512000000u);
  EXPECT_EQ(parse_bytes("1048576", "--kv-memory"), 1048576u);
}

TEST(Units, AnUnreadableSizeNamesTheFlag) {
  for (const char* bad : {"", "four", "-1GiB", "nan", "inf", "4Gib!", "1e300GiB"}) {
    try {
      parse_bytes(bad, "--kv-memory");
      ADD_FAILURE() << bad;
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("--kv-memory"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace octavo
