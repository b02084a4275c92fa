#include "scheduler/fair_turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

using Turns = std::vector<int64_t>;

Turns enter_all(FairTurns& turns, const std::string& owner, uint64_t call, int count) {
  Turns entered;
  for (int i = 0; i < count; ++i) entered.push_back(turns.enter(owner, call) / 2);
  return entered;
}

TEST(FairTurns, SingleSequencesKeepTheirOrder) {
  FairTurns turns(8);
  int64_t before = 0;
  for (uint64_t call = 1; call < 100; ++call) {
    const int64_t turn = turns.enter("a", call);
    EXPECT_GT(turn, before);
    before = turn;
    if (call % 3 == 0) turns.leave("a", call - 2);  // in any order
    if (call % 5 == 0) turns.admitted(turn);
  }
}

TEST(FairTurns, ANewCallComesBeforeTheTailOfALongOne) {
  FairTurns turns(8);
  EXPECT_EQ(enter_all(turns, "a", 1, 5), (Turns{1, 2, 3, 4, 5}));
  EXPECT_EQ(enter_all(turns, "a", 2, 1), (Turns{2}));
  EXPECT_EQ(enter_all(turns, "a", 3, 1), (Turns{3}));
}

TEST(FairTurns, WithinATurnFirstSequencesGoFirst) {
  FairTurns turns(8);
  turns.enter("a", 1);
  const int64_t second = turns.enter("a", 1);
  const int64_t newcomer = turns.enter("a", 2);
  EXPECT_EQ(second / 2, newcomer / 2);
  EXPECT_LT(newcomer, second);
}

TEST(FairTurns, CallsThatHaveEndedTakeNoTurns) {
  FairTurns turns(8);
  EXPECT_EQ(enter_all(turns, "a", 1, 5), (Turns{1, 2, 3, 4, 5}));
  for (uint64_t call = 2; call < 10; ++call) {
    EXPECT_EQ(enter_all(turns, "a", call, 1), (Turns{2}));
    turns.leave("a", call);
  }
}

TEST(FairTurns, ANewOwnerComesFirst) {
  FairTurns turns(8);
  for (uint64_t call = 1; call <= 20; ++call) turns.enter("a", call);
  EXPECT_EQ(enter_all(turns, "b", 21, 1), (Turns{1}));
  EXPECT_EQ(enter_all(turns, "b", 22, 1), (Turns{2}));
}

TEST(FairTurns, ManyLongCallsOfAnOwnerAreSpacedOut) {
  FairTurns turns(8);
  for (uint64_t call = 1; call <= 3; ++call) turns.enter("a", call);
  EXPECT_EQ(enter_all(turns, "a", 1, 2), (Turns{2, 3}));  // after its first turn, 1
  EXPECT_EQ(enter_all(turns, "a", 2, 2), (Turns{4, 6}));  // after 2
  EXPECT_EQ(enter_all(turns, "a", 3, 2), (Turns{6, 9}));  // after 3
  for (int i = 0; i < 3; ++i) turns.leave("a", 1);
  EXPECT_EQ(enter_all(turns, "a", 4, 2), (Turns{4, 7}));  // three long calls again
}

TEST(FairTurns, PastUseIsForgotten) {
  FairTurns turns(8);
  turns.enter("stays", 1);
  for (uint64_t call = 2; call <= 1000; ++call) {
    turns.admitted(turns.enter("busy", call));
    if (call > 2) turns.leave("busy", call - 1);  // never without an open call
  }
  const int64_t busy = turns.enter("busy", 1001);
  const int64_t fresh = turns.enter("fresh", 1002);
  EXPECT_LE(fresh, busy);
  EXPECT_LE(busy / 2 - fresh / 2, 8 + 1);
}

TEST(FairTurns, NoSequenceWaitsIndefinitely) {
  FairTurns turns(8);
  const int64_t last = enter_all(turns, "long", 1, 100).back();
  uint64_t call = 2;
  // Newcomers that end at once, each alone, get the earliest turn.
  while (true) {
    const int64_t place = turns.enter("new", call);
    if (place / 2 > last) break;
    turns.admitted(place);
    turns.leave("new", call++);
    ASSERT_LT(call, 10'000u);
  }
}

}  // namespace
}  // namespace octavo
