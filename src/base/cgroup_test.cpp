#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace octavo {
namespace {

namespace fs = std::filesystem;

// A folder that replaces the file system root.
class Cgroup : public testing::Test {
 protected:
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const fs::path root_ =
      fs::temp_directory_path() / ("octavo_cgroup_" + std::to_string(::getpid()));
};

TEST_F(Cgroup, NoLimitsWithoutFiles) {
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cores);
}

TEST_F(Cgroup, ReadsAContainersLimitsAtTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory_bytes, 1u << 30);
  EXPECT_DOUBLE_EQ(limits.cores.value(), 1.5);
}

TEST_F(Cgroup, MaxIsNoLimit) {
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cores);
}

TEST_F(Cgroup, AServicesOwnLimitIsFound) {
  write("proc/self/cgroup", "0::/system.slice/octavo.service\n");
  write("sys/fs/cgroup/system.slice/octavo.service/memory.max", "2000\n");
  write("sys/fs/cgroup/system.slice/memory.max", "max\n");
  EXPECT_EQ(cgroup_limits(root_).memory_bytes, 2000u);
}

TEST_F(Cgroup, TheTightestAboveCounts) {
  write("proc/self/cgroup", "0::/user.slice/job.scope\n");
  write("sys/fs/cgroup/user.slice/job.scope/memory.max", "2000\n");
  write("sys/fs/cgroup/user.slice/memory.max", "1000\n");
  EXPECT_EQ(cgroup_limits(root_).memory_bytes, 1000u);
}

TEST_F(Cgroup, TheOldHierarchyIsRead) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_EQ(limits.memory_bytes, 4096u);
  EXPECT_DOUBLE_EQ(limits.cores.value(), 0.5);
}

TEST_F(Cgroup, TheOldHierarchysDefaultIsNoLimit) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cores);
}

TEST_F(Cgroup, ACpusetIsRead) {
  write("proc/self/cgroup", "0::/kubepods/pod1\n");
  write("sys/fs/cgroup/cpuset.cpus.effective", "0-191\n");
  write("sys/fs/cgroup/kubepods/pod1/cpuset.cpus.effective", "4-7,100-103\n");
  EXPECT_EQ(cgroup_limits(root_).cpus, (std::vector<CpuId>{4, 5, 6, 7, 100, 101, 102, 103}));
}

TEST_F(Cgroup, ACpusetOfTheOldHierarchyIsRead) {
  write("proc/self/cgroup", "9:name=systemd:/\n3:cpuset:/docker/1f\n0::/\n");
  write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
  write("sys/fs/cgroup/cpuset/docker/1f/cpuset.cpus", "2-3\n");
  EXPECT_EQ(cgroup_limits(root_).cpus, (std::vector<CpuId>{2, 3}));
}

TEST_F(Cgroup, AnEmptyOrInvalidCpusetIsNoLimit) {
  write("sys/fs/cgroup/cpuset.cpus.effective", "\n");
  write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-\n");
  EXPECT_FALSE(cgroup_limits(root_).cpus);
}

}  // namespace
}  // namespace octavo
