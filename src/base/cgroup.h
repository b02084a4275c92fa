// cgroup.h - what the control group of this process allows it. Linux; elsewhere there are no
// limits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace octavo {

struct CgroupLimits {
  std::optional<uint64_t> memory_bytes;
  std::optional<double> cores;  // CPU time per time
};

// The tightest limits of the process's own group and those above it: a service of systemd's or a
// container's process is limited by any of them. `root` stands for / in tests.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace octavo
