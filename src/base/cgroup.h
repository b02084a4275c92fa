// cgroup.h - the limits of this process's control group. Linux only; elsewhere there are none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace octavo {

struct CgroupLimits {
  std::optional<uint64_t> memory_bytes;
  std::optional<double> cores;  // CPU quota, in cores
};

// Returns the tightest limits among the process's own group and its ancestors, all of which apply.
// Tests replace `root`.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace octavo
