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
  Turns places = {0};  // by call
  for (uint64_t call = 1; call < 100; ++call) {
    places.push_back(turns.enter("a", call));
    EXPECT_GT(places[call], places[call - 1]);
    if (call % 3 == 0) turns.leave("a", call - 2, places[call - 2]);  // in any order
    if (call % 5 == 0) turns.admitted(places[call]);
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
    const int64_t place = turns.enter("a", call);
    EXPECT_EQ(place / 2, 2);
    turns.leave("a", call, place);
  }
}

TEST(FairTurns, ANewcomerDoesNotOvertakeTheOldestOpenSequence) {
  FairTurns turns(64);
  Turns places = {0};  // by call
  for (uint64_t call = 1; call <= 30; ++call) places.push_back(turns.enter("a", call));
  for (uint64_t call = 1; call < 30; ++call) turns.leave("a", call, places[call]);
  EXPECT_EQ(turns.enter("b", 31), places[30]);  // arrival decides
  turns.leave("a", 30, places[30]);
  EXPECT_EQ(turns.enter("c", 32), places[30]);
}

TEST(FairTurns, SerialNewcomersInterruptASequenceOncePerTurn) {
  FairTurns turns(64);
  const int64_t last = enter_all(turns, "long", 1, 10).back();
  int times = 0;
  for (uint64_t call = 2; times < 100; ++call, ++times) {
    const int64_t place = turns.enter("new", call);
    turns.admitted(place);
    turns.leave("new", call, place);
    if (place / 2 > last) break;
    turns.gave_way();
  }
  EXPECT_EQ(times, 10);
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
  for (int64_t turn = 1; turn <= 3; ++turn) turns.leave("a", 1, 2 * turn);
  EXPECT_EQ(enter_all(turns, "a", 4, 2), (Turns{4, 7}));  // three long calls again
}

TEST(FairTurns, PastUseIsForgotten) {
  FairTurns turns(8);
  turns.enter("stays", 1);
  int64_t before = 0;
  for (uint64_t call = 2; call <= 1000; ++call) {
    const int64_t place = turns.enter("busy", call);
    turns.admitted(place);
    if (call > 2) turns.leave("busy", call - 1, before);  // never without an open call
    before = place;
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
    turns.leave("new", call++, place);
    ASSERT_LT(call, 10'000u);
  }
}

}  // namespace
}  // namespace octavo
