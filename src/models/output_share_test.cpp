#include "models/output_share.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OutputShare, OneRankHasAllOutputs) {
  const OutputShare whole;
  EXPECT_EQ(whole.part(40), 40);
  EXPECT_EQ(whole.real(40), 40);
  EXPECT_THAT(whole.picks(40), IsEmpty());
}

TEST(OutputShare, RanksHaveEqualPartsOfWholeStrips) {
  for (int rank = 0; rank < 3; ++rank) {
    const OutputShare share{rank, 3};
    EXPECT_EQ(share.part(96), 32);
    EXPECT_EQ(share.real(96), 32);
    EXPECT_EQ(share.picks(96).front(), 32 * rank);
    EXPECT_EQ(share.picks(96).back(), 32 * rank + 31);
  }
}

TEST(OutputShare, TheLastPartRepeatsTheLastOutput) {
  const OutputShare last{1, 2};
  EXPECT_EQ(last.part(40), 32);
  EXPECT_EQ(last.real(40), 8);
  const std::vector<int> picks = last.picks(40);
  EXPECT_EQ(picks.size(), 32);
  EXPECT_EQ(picks[7], 39);
  EXPECT_EQ(picks[31], 39);
}

TEST(OutputShare, ARankMayHaveRepetitionsOnly) {
  const OutputShare fourth{3, 4};
  EXPECT_EQ(fourth.part(5, 1), 2);
  EXPECT_EQ(fourth.real(5, 1), 0);
  EXPECT_THAT(fourth.picks(5, 1), ElementsAre(4, 4));
}

TEST(OutputShare, PartsCoverEveryOutputOnce) {
  for (int full = 1; full < 100; ++full) {
    for (int ranks = 1; ranks < 6; ++ranks) {
      int covered = 0;
      for (int rank = 0; rank < ranks; ++rank) covered += OutputShare{rank, ranks}.real(full);
      EXPECT_EQ(covered, full) << full << " outputs, " << ranks << " ranks";
    }
  }
}

TEST(PickedRows, ArePickedFromTheOrder) {
  EXPECT_THAT(picked_rows(std::vector{5, 6, 7}, std::vector{2, 2, 0}), ElementsAre(7, 7, 5));
  EXPECT_THAT(picked_rows({}, std::vector{2, 1}), ElementsAre(2, 1));
  EXPECT_THAT(picked_rows(std::vector{5, 6}, {}), ElementsAre(5, 6));
}

TEST(RowsOfHeads, FollowEachOther) {
  EXPECT_THAT(rows_of_heads(std::vector{2, 0}, 2, 10), ElementsAre(14, 15, 10, 11));
}

}  // namespace
}  // namespace octavo
