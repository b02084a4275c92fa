// macOS's description of the CPUs. It has no NUMA nodes and no affinity, so only counts matter.
#ifdef __APPLE__

#include <sys/sysctl.h>

#include <cstdint>

#include "base/topology/topology.h"

namespace octavo {
namespace {

int sysctl_count(const char* name) {
  int32_t value = 0;
  size_t size = sizeof(value);
  return ::sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value > 0 ? value : 0;
}

void add_cores(Topology& topology, int count, bool is_efficient) {
  for (int i = 0; i < count; ++i) {
    const auto id = static_cast<CpuId>(topology.cpus.size());
    topology.cpus.push_back({.id = id, .core = id, .is_efficient = is_efficient});
  }
}

}  // namespace

// Level 0 has the fastest cores.
Topology read_topology(const std::filesystem::path&) {
  Topology topology;
  add_cores(topology, sysctl_count("hw.perflevel0.physicalcpu"), false);
  add_cores(topology, sysctl_count("hw.perflevel1.physicalcpu"), true);
  if (topology.cpus.empty()) add_cores(topology, sysctl_count("hw.physicalcpu"), false);
  return topology;
}

}  // namespace octavo

#endif
