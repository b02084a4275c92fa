// cgroup.h - the limits of this process's control group. Linux only; elsewhere there are none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/topology/cpu_list.h"

namespace octavo {

struct CgroupLimits {
  std::optional<uint64_t> memory_bytes;
  std::optional<double> cores;             // CPU quota, in cores
  std::optional<std::vector<CpuId>> cpus;  // the cpuset; nullopt: none, or not readable
};

// Returns the tightest limits among the process's own group and its ancestors, all of which apply.
// Tests replace `root`.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace octavo
