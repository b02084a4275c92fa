#include "base/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace octavo {
namespace {

namespace fs = std::filesystem;

template <typename Value>
void tighten(std::optional<Value>& limit, Value found) {
  limit = limit ? std::min(*limit, found) : found;
}

// The path of this process in a hierarchy, from a line like "0::/system.slice/octavo.service" (v2,
// `controller` is empty) or "3:cpuset:/docker/1f" (v1). Empty inside a cgroup namespace or without
// cgroups.
fs::path own_group(const fs::path& root, std::string_view controller) {
  const std::string mark = fmt::format(":{}:/", controller);
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.substr(colon).starts_with(mark))
      return line.substr(colon + mark.size());
  }
  return {};
}

void read_cpuset(const fs::path& path, CgroupLimits& limits) {
  std::ifstream file(path);
  const auto found = parse_cpu_list(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!found || found->empty()) return;  // an empty list inherits the parent's
  limits.cpus = limits.cpus ? common_cpus(*limits.cpus, *found) : *found;
}

void read_v2(const fs::path& group, CgroupLimits& limits) {
  // "max", which means no limit, does not parse as a number.
  uint64_t bytes = 0;
  if (std::ifstream file(group / "memory.max"); file >> bytes) tighten(limits.memory_bytes, bytes);
  double quota = 0;  // microseconds of CPU time in each period
  double period = 0;
  if (std::ifstream file(group / "cpu.max"); file >> quota >> period && period > 0)
    tighten(limits.cores, quota / period);
  read_cpuset(group / "cpuset.cpus.effective", limits);
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

void read_v1_cpuset(const fs::path& group, CgroupLimits& limits) {
  std::error_code error;
  const fs::path effective = group / "cpuset.effective_cpus";
  read_cpuset(fs::exists(effective, error) ? effective : group / "cpuset.cpus", limits);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const fs::path mount = root / "sys/fs/cgroup";
  fs::path own = own_group(root, "");
  for (; !own.empty(); own = own.parent_path()) read_v2(mount / own, limits);
  read_v2(mount, limits);
  read_v1(mount, limits);
  own = own_group(root, "cpuset");
  for (; !own.empty(); own = own.parent_path()) read_v1_cpuset(mount / "cpuset" / own, limits);
  read_v1_cpuset(mount / "cpuset", limits);
  return limits;
}

}  // namespace octavo
