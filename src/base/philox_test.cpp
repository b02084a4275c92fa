#include "base/philox.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// The known-answer vectors of the Random123 distribution for philox4x32-10.
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsAreInTheUnitIntervalAndDifferByKeyChoiceAndPosition) {
  double sum = 0;
  constexpr int kDraws = 1000000;
  for (uint32_t position = 0; position < kDraws; ++position) {
    const double u = token_uniform(7, 0, position);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.002);  // about seven standard deviations
  EXPECT_NE(token_uniform(7, 0, 3), token_uniform(8, 0, 3));
  EXPECT_NE(token_uniform(7, 0, 3), token_uniform(7, 1, 3));
  EXPECT_NE(token_uniform(7, 0, 3), token_uniform(7, 0, 4));
}

}  // namespace
}  // namespace octavo
