#include "base/topology/thread_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ThreadPlan kTwoNodes{.cpus = {0, 1, 4, 5}, .nodes = 2, .allowed_cores = 4};
const ThreadPlan kOneNode{.cpus = {0, 1, 2, 3}, .nodes = 1, .allowed_cores = 4};

TEST(ThreadBinding, OneThreadPerCoreOfSeveralNodesIsBound) {
  const ThreadBinding binding = bind_threads(kTwoNodes, {});
  EXPECT_EQ(binding.threads, 4);
  EXPECT_THAT(binding.cpus, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(bind_threads(kTwoNodes, {.bind = "nobind"}).cpus, IsEmpty());
}

TEST(ThreadBinding, OneNodeIsBoundOnlyOnRequest) {
  EXPECT_THAT(bind_threads(kOneNode, {}).cpus, IsEmpty());
  EXPECT_THAT(bind_threads(kOneNode, {.bind = "auto"}).cpus, IsEmpty());
  EXPECT_THAT(bind_threads(kOneNode, {.pinned = true}).cpus, ElementsAre(0, 1, 2, 3));
}

// Two servers with half of the threads each must not share cores while others idle.
TEST(ThreadBinding, FewerOrMoreThreadsThanCoresAreNotBound) {
  EXPECT_THAT(bind_threads(kTwoNodes, {.threads = 2}).cpus, IsEmpty());
  EXPECT_THAT(bind_threads(kTwoNodes, {.threads = 8}).cpus, IsEmpty());
  const ThreadPlan quota{.cpus = {0, 1, 4}, .nodes = 2, .allowed_cores = 4};
  EXPECT_THAT(bind_threads(quota, {}).cpus, IsEmpty());
}

TEST(ThreadBinding, AListSetsTheThreadsToo) {
  const ThreadBinding binding = bind_threads(kOneNode, {.bind = "2-3,7"});
  EXPECT_EQ(binding.threads, 3);
  EXPECT_THAT(binding.cpus, ElementsAre(2, 3, 7));
  EXPECT_EQ(bind_threads(kOneNode, {.threads = 2, .bind = "2-3,7"}).threads, 2);
}

TEST(ThreadBinding, InvalidValuesAreRejected) {
  EXPECT_THROW(bind_threads(kOneNode, {.bind = "all"}), SetupError);
  EXPECT_THROW(bind_threads(kOneNode, {.bind = "3-1"}), SetupError);
  EXPECT_THROW(bind_threads(kOneNode, {.threads = 3, .bind = "0-1"}), SetupError);
}

}  // namespace
}  // namespace octavo
