#include "cli/distributed/launch_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX

namespace octavo {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr LaunchTimes kTimes{.grace = milliseconds(3000), .to_kill = milliseconds(1000)};

using RankSignal = LaunchState::Signal;

LaunchState::Time at_ms(int ms) {
  return LaunchState::Time() + std::chrono::hours(1) + milliseconds(ms);
}

TEST(LaunchState, NothingIsDueWhileAllRun) {
  LaunchState state(3, kTimes);
  EXPECT_FALSE(state.next());
  EXPECT_THAT(state.due(at_ms(100'000)), IsEmpty());
  EXPECT_FALSE(state.all_ended());
}

TEST(LaunchState, ASignalDrainsRankZeroWhichEndsTheOthers) {
  LaunchState state(3, kTimes);
  EXPECT_THAT(state.interrupted(at_ms(0)), ElementsAre(RankSignal{0, SIGTERM}));
  EXPECT_FALSE(state.next()) << "open requests may take as long as --drain-timeout allows";
  state.ended(1, 0, at_ms(20'000));
  state.ended(2, 0, at_ms(20'001));
  state.ended(0, 0, at_ms(20'002));
  EXPECT_TRUE(state.all_ended());
  EXPECT_EQ(state.exit_status(), 0);
  EXPECT_EQ(state.reason(), "");
}

TEST(LaunchState, ASecondSignalEndsAll) {
  LaunchState state(2, kTimes);
  state.interrupted(at_ms(0));
  EXPECT_THAT(state.interrupted(at_ms(10)),
              ElementsAre(RankSignal{0, SIGTERM}, RankSignal{1, SIGTERM}));
  EXPECT_EQ(state.next(), at_ms(1010));
  EXPECT_THAT(state.due(at_ms(1009)), IsEmpty());
  state.ended(0, 128 + SIGTERM, at_ms(1009));
  EXPECT_THAT(state.due(at_ms(1010)), ElementsAre(RankSignal{1, SIGKILL}));
  // A third signal does not move the time of SIGKILL.
  EXPECT_THAT(state.interrupted(at_ms(1011)), ElementsAre(RankSignal{1, SIGTERM}));
  state.ended(1, 128 + SIGKILL, at_ms(1100));
  EXPECT_TRUE(state.all_ended());
  EXPECT_FALSE(state.next());
  EXPECT_EQ(state.exit_status(), 128 + SIGTERM);
}

TEST(LaunchState, AWorkerThatEndsEndsAll) {
  LaunchState state(3, kTimes);
  state.ended(2, 128 + SIGKILL, at_ms(0));
  EXPECT_EQ(state.reason(), "rank 2 was ended by signal 9");
  EXPECT_EQ(state.next(), at_ms(3000)) << "rank 0 answers its requests first";
  EXPECT_THAT(state.due(at_ms(2999)), IsEmpty());
  state.ended(0, 1, at_ms(2000));
  EXPECT_EQ(state.next(), at_ms(3000));
  EXPECT_THAT(state.due(at_ms(3000)), ElementsAre(RankSignal{1, SIGTERM}));
  EXPECT_EQ(state.next(), at_ms(4000));
  EXPECT_THAT(state.due(at_ms(4000)), ElementsAre(RankSignal{1, SIGKILL}));
  state.ended(1, 128 + SIGKILL, at_ms(4001));
  EXPECT_EQ(state.exit_status(), 1);
  EXPECT_EQ(state.reason(), "rank 2 was ended by signal 9");
}

TEST(LaunchState, AWorkerThatEndsWellTooEarlyIsAFailure) {
  LaunchState state(2, kTimes);
  state.ended(1, 0, at_ms(0));
  state.ended(0, 0, at_ms(10));
  EXPECT_EQ(state.exit_status(), 1);
  EXPECT_EQ(state.reason(), "rank 1 exited with status 0");
}

TEST(LaunchState, AStatusAboveTheSignalsIsAStatus) {
  LaunchState state(2, kTimes);
  state.ended(1, 255, at_ms(0));
  EXPECT_EQ(state.reason(), "rank 1 exited with status 255");
}

TEST(LaunchState, AWorkerThatFailsDuringTheDrainIsAFailure) {
  LaunchState state(2, kTimes);
  state.interrupted(at_ms(0));
  state.ended(1, 1, at_ms(10));
  EXPECT_EQ(state.next(), at_ms(3010));
  state.ended(0, 0, at_ms(20));
  EXPECT_EQ(state.exit_status(), 1);
}

TEST(LaunchState, TheStatusOfRankZeroIsPassedOn) {
  LaunchState state(2, kTimes);
  state.ended(0, 2, at_ms(0));
  EXPECT_EQ(state.reason(), "rank 0 exited with status 2");
  EXPECT_THAT(state.due(at_ms(3000)), ElementsAre(RankSignal{1, SIGTERM}));
  state.ended(1, 1, at_ms(3001));
  EXPECT_EQ(state.exit_status(), 2);
}

TEST(LaunchState, ASignalAfterRankZeroHasEndedEndsTheOthers) {
  LaunchState state(2, kTimes);
  state.ended(0, 0, at_ms(0));
  EXPECT_THAT(state.interrupted(at_ms(1)), ElementsAre(RankSignal{1, SIGTERM}));
  EXPECT_EQ(state.next(), at_ms(1001));
}

TEST(LaunchState, SigkillIsRepeatedUntilAllHaveEnded) {
  LaunchState state(2, kTimes);
  state.ended(0, 1, at_ms(0));
  state.due(at_ms(3000));
  EXPECT_THAT(state.due(at_ms(4000)), ElementsAre(RankSignal{1, SIGKILL}));
  EXPECT_THAT(state.due(at_ms(4500)), IsEmpty());
  EXPECT_THAT(state.due(at_ms(5000)), ElementsAre(RankSignal{1, SIGKILL}));
}

}  // namespace
}  // namespace octavo
