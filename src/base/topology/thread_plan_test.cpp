#include "base/topology/thread_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;

std::vector<CpuId> ids(CpuId first, CpuId last) {
  std::vector<CpuId> list(static_cast<size_t>(last - first + 1));
  std::iota(list.begin(), list.end(), first);
  return list;
}

// Two packages of 48 cores with two threads each, as ids are assigned on Linux.
Topology two_by_48() {
  Topology topology;
  for (CpuId id = 0; id < 192; ++id) {
    const CpuId core = id % 96;
    topology.cpus.push_back({.id = id, .core = core, .package = core / 48, .node = core / 48});
  }
  return topology;
}

// Two fast cores with two threads each, then four E cores.
Topology hybrid() {
  Topology topology;
  for (CpuId id = 0; id < 4; ++id) topology.cpus.push_back({.id = id, .core = id / 2 * 2});
  for (CpuId id = 4; id < 8; ++id)
    topology.cpus.push_back({.id = id, .core = id, .is_efficient = true});
  return topology;
}

TEST(ThreadPlan, OneThreadPerCore) {
  const ThreadPlan plan = plan_threads(two_by_48(), {});
  EXPECT_EQ(plan.cpus, ids(0, 95));
  EXPECT_EQ(plan.nodes, 2);
  EXPECT_EQ(plan.allowed_cores, 96);
}

TEST(ThreadPlan, NeighboursAreOnTheSameNode) {
  Topology topology;
  for (CpuId id = 0; id < 8; ++id) topology.cpus.push_back({.id = id, .core = id, .node = id % 2});
  EXPECT_THAT(plan_threads(topology, {}).cpus, ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(ThreadPlan, AffinityCountsCoresNotThreads) {
  // Cores 0 and 1 with both threads, and the second thread of core 50.
  const ThreadPlan plan = plan_threads(two_by_48(), {.affinity = {0, 1, 96, 97, 146}});
  EXPECT_THAT(plan.cpus, ElementsAre(0, 1, 146));
  EXPECT_EQ(plan.allowed_cores, 3);
  EXPECT_EQ(plan.nodes, 2);
}

TEST(ThreadPlan, ACpusetLimitsTheAffinity) {
  const ThreadPlan plan =
      plan_threads(two_by_48(), {.affinity = ids(0, 191), .cpuset = ids(48, 55)});
  EXPECT_EQ(plan.cpus, ids(48, 55));
  EXPECT_EQ(plan.nodes, 1);
}

TEST(ThreadPlan, ACpusetOfOtherCpusIsIgnored) {
  EXPECT_EQ(plan_threads(two_by_48(), {.cpuset = ids(500, 510)}).threads(), 96);
  EXPECT_EQ(plan_threads(two_by_48(), {.affinity = ids(300, 301)}).threads(), 96);
}

TEST(ThreadPlan, AQuotaFillsOneNodeFirst) {
  const ThreadPlan plan = plan_threads(two_by_48(), {.quota = 16.5});
  EXPECT_EQ(plan.cpus, ids(0, 15));
  EXPECT_EQ(plan.nodes, 1);
  EXPECT_EQ(plan.allowed_cores, 96);
}

TEST(ThreadPlan, LessThanOneCoreIsOneThread) {
  EXPECT_EQ(plan_threads(two_by_48(), {.quota = 0.3}).threads(), 1);
}

TEST(ThreadPlan, EfficiencyCoresAreUsedOrLeftOut) {
  EXPECT_THAT(plan_threads(hybrid(), {}).cpus, ElementsAre(0, 2, 4, 5, 6, 7));
  EXPECT_THAT(plan_threads(hybrid(), {}, EfficientCores::kLeftOut).cpus, ElementsAre(0, 2));
  EXPECT_THAT(plan_threads(hybrid(), {.affinity = ids(4, 7)}, EfficientCores::kLeftOut).cpus,
              ElementsAre(4, 5, 6, 7));
}

TEST(ThreadPlan, AQuotaLeavesOutEfficiencyCoresFirst) {
  EXPECT_THAT(plan_threads(hybrid(), {.quota = 3}).cpus, ElementsAre(0, 2, 4));
}

TEST(ThreadPlan, WithoutATopologyEveryAllowedCpuIsACore) {
  EXPECT_THAT(plan_threads({}, {.affinity = {3, 5}}).cpus, ElementsAre(3, 5));
  EXPECT_EQ(plan_threads({}, {}).threads(), 1);
}

TEST(ThreadPlan, ThisProcessMayUseAtLeastOneCore) {
  const ThreadPlan plan = plan_threads();
  EXPECT_GE(plan.threads(), 1);
  EXPECT_LE(plan.threads(), plan.allowed_cores);
  EXPECT_THAT(plan.cpus, Each(::testing::AllOf(Ge(0), Lt(kMaxCpus))));
}

}  // namespace
}  // namespace octavo
