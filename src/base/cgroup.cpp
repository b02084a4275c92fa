#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace octavo {
namespace {

namespace fs = std::filesystem;

template <typename Value>
void tighten(std::optional<Value>& limit, Value found) {
  limit = limit ? std::min(*limit, found) : found;
}

// The path of this process in the v2 hierarchy, from a line like
// "0::/system.slice/octavo.service". Empty inside a cgroup namespace or without cgroups.
std::string own_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

void read_v2(const fs::path& group, CgroupLimits& limits) {
  // "max", which means no limit, does not parse as a number.
  uint64_t bytes = 0;
  if (std::ifstream file(group / "memory.max"); file >> bytes) tighten(limits.memory_bytes, bytes);
  double quota = 0;  // microseconds of CPU time in each period
  double period = 0;
  if (std::ifstream file(group / "cpu.max"); file >> quota >> period && period > 0)
    tighten(limits.cores, quota / period);
}

void read_v1(const fs::path& mount, CgroupLimits& limits) {
  // Without a limit the file has a huge number.
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;
  uint64_t bytes = 0;
  if (std::ifstream file(mount / "memory/memory.limit_in_bytes"); file >> bytes && bytes < kNoLimit)
    tighten(limits.memory_bytes, bytes);
  double quota = 0;  // -1: no limit
  double period = 0;
  std::ifstream quota_file(mount / "cpu/cpu.cfs_quota_us");
  std::ifstream period_file(mount / "cpu/cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0)
    tighten(limits.cores, quota / period);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const fs::path mount = root / "sys/fs/cgroup";
  fs::path own = own_group(root);
  for (; !own.empty(); own = own.parent_path()) read_v2(mount / own, limits);
  read_v2(mount, limits);
  read_v1(mount, limits);
  return limits;
}

}  // namespace octavo
