#include "base/topology/topology.h"

#include <gtest/gtest.h>

#include "base/testing/sysfs_tree.h"

#ifndef __APPLE__  // sysfs is not read there

namespace octavo {
namespace {

TEST(Topology, TwoPackagesWithTwoThreadsPerCore) {
  SysfsTree tree;
  tree.server(2, 48, 2);
  const Topology topology = read_topology(tree.root());
  ASSERT_EQ(topology.cpus.size(), 192u);
  EXPECT_EQ(topology.cpus[96].core, 0);
  EXPECT_EQ(topology.cpus[191].core, 95);
  EXPECT_EQ(topology.cpus[47].node, 0);
  EXPECT_EQ(topology.cpus[48].node, 1);
  EXPECT_EQ(topology.cpus[144].package, 1);
  EXPECT_EQ(topology.efficient_cores(), 0);
  EXPECT_EQ(describe(topology), "2 packages, 2 NUMA nodes, 96 cores with 192 CPUs");
}

TEST(Topology, NodesCanBePartsOfAPackage) {
  SysfsTree tree;
  tree.server(2, 32, 1);
  for (int node = 0; node < 4; ++node)
    tree.node(node, std::to_string(node * 16) + "-" + std::to_string(node * 16 + 15));
  tree.node(4, "");  // memory without CPUs
  EXPECT_EQ(describe(read_topology(tree.root())), "2 packages, 4 NUMA nodes, 64 cores");
}

TEST(Topology, IntelsEfficiencyCoresAreKnown) {
  SysfsTree tree;
  tree.online("0-7");
  for (int id = 0; id < 4; ++id) tree.cpu(id, 0, id / 2 * 4, id < 2 ? "0-1" : "2-3");
  for (int id = 4; id < 8; ++id) tree.cpu(id, 0, id + 4, std::to_string(id));
  tree.write("sys/devices/cpu_core/cpus", "0-3");
  tree.write("sys/devices/cpu_atom/cpus", "4-7");
  const Topology topology = read_topology(tree.root());
  EXPECT_FALSE(topology.cpus[3].is_efficient);
  EXPECT_TRUE(topology.cpus[4].is_efficient);
  EXPECT_EQ(describe(topology), "1 package, 1 NUMA node, 6 cores with 8 CPUs (4 of them E cores)");
}

TEST(Topology, SlowCoresAreKnownByCapacityOrFrequency) {
  for (const char* file : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    SysfsTree tree;
    tree.server(1, 4, 1);
    const char* speeds[] = {"1024", "1000", "800", "446"};
    for (int id = 0; id < 4; ++id) tree.write(SysfsTree::file_of(id, file), speeds[id]);
    const Topology topology = read_topology(tree.root());
    EXPECT_FALSE(topology.cpus[2].is_efficient) << file;
    EXPECT_TRUE(topology.cpus[3].is_efficient) << file;
  }
}

TEST(Topology, OfflineCpusAreLeftOut) {
  SysfsTree tree;
  tree.server(1, 4, 2);
  tree.online(
      "1-3,4,6");  // the first thread of core 0 is offline, as are the second ones of 1 and 3
  const Topology topology = read_topology(tree.root());
  ASSERT_EQ(topology.cpus.size(), 5u);
  EXPECT_EQ(topology.cores(), 4);
  EXPECT_EQ(topology.cpus[3].core, 4);  // CPU 4 is alone on core 0
  EXPECT_EQ(topology.cpus[4].core, 2);
}

TEST(Topology, CoreIdsReplaceMissingSiblings) {
  SysfsTree tree;
  tree.online("0-3");
  for (int id = 0; id < 4; ++id) {
    tree.write(SysfsTree::file_of(id, "topology/physical_package_id"), id < 2 ? "0" : "1");
    tree.write(SysfsTree::file_of(id, "topology/core_id"), "7");
  }
  const Topology topology = read_topology(tree.root());
  EXPECT_EQ(topology.cores(), 2);
  EXPECT_EQ(topology.packages(), 2);
}

TEST(Topology, ACpuWithoutFilesIsACore) {
  SysfsTree tree;
  tree.online("0-3");
  EXPECT_EQ(describe(read_topology(tree.root())), "1 package, 1 NUMA node, 4 cores");
}

TEST(Topology, FoldersReplaceAMissingOnlineList) {
  SysfsTree tree;
  tree.write(SysfsTree::file_of(0, "uevent"), "");
  tree.write(SysfsTree::file_of(1, "uevent"), "");
  tree.write("sys/devices/system/cpu/cpufreq/boost", "1");
  tree.write("sys/devices/system/cpu/cpuidle/current_driver", "none");
  EXPECT_EQ(read_topology(tree.root()).cores(), 2);
}

TEST(Topology, WithoutSysfsThereIsNone) {
  const SysfsTree tree;
  EXPECT_TRUE(read_topology(tree.root()).cpus.empty());
  EXPECT_EQ(describe(read_topology(tree.root())), "not described by the system");
}

TEST(Topology, NonsenseIsIgnored) {
  SysfsTree tree;
  tree.online("0-3");
  tree.cpu(0, -1, -1, "1-3");             // does not name itself
  tree.cpu(1, 0, 99999, "0-4294967295");  // not a list; its core id counts
  tree.cpu(2, 0, 2, "0,2");               // CPU 0 disagrees
  tree.cpu(3, 0, 2, "2,3");
  tree.node(0, "0-3,nonsense");
  tree.write("sys/devices/system/node/node99999/cpulist", "0");
  tree.write("sys/devices/system/node/nodes/cpulist", "0");
  for (int id = 0; id < 4; ++id) tree.write(SysfsTree::file_of(id, "cpu_capacity"), "fast");
  const Topology topology = read_topology(tree.root());
  ASSERT_EQ(topology.cpus.size(), 4u);
  for (const Cpu& cpu : topology.cpus) {
    EXPECT_EQ(topology.cpus[static_cast<size_t>(cpu.core)].core, cpu.core) << cpu.id;
    EXPECT_EQ(cpu.node, 0);
    EXPECT_FALSE(cpu.is_efficient);
  }
}

TEST(Topology, AnOnlineListOfNonsenseIsReplacedByTheFolders) {
  SysfsTree tree;
  tree.server(1, 2, 1);
  tree.online("all of them");
  EXPECT_EQ(read_topology(tree.root()).cores(), 2);
}

}  // namespace
}  // namespace octavo

#endif
