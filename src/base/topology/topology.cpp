#include "base/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace octavo {
namespace {

template <typename Key>
int distinct(const std::vector<Cpu>& cpus, Key key) {
  std::set<int> keys;
  for (const Cpu& cpu : cpus) keys.insert(cpu.*key);
  return static_cast<int>(keys.size());
}

std::string counted(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

int Topology::cores() const { return distinct(cpus, &Cpu::core); }

int Topology::efficient_cores() const {
  std::set<CpuId> found;
  for (const Cpu& cpu : cpus) {
    if (cpu.is_efficient) found.insert(cpu.core);
  }
  return static_cast<int>(found.size());
}

int Topology::packages() const { return distinct(cpus, &Cpu::package); }

int Topology::nodes() const { return distinct(cpus, &Cpu::node); }

std::string describe(const Topology& topology) {
  if (topology.cpus.empty()) return "not described by the system";
  const int cores = topology.cores();
  const int efficient = topology.efficient_cores();
  std::string text = fmt::format("{}, {}, {}", counted(topology.packages(), "package", "packages"),
                                 counted(topology.nodes(), "NUMA node", "NUMA nodes"),
                                 counted(cores, "core", "cores"));
  if (const auto cpus = static_cast<int>(topology.cpus.size()); cpus != cores)
    text += fmt::format(" with {} CPUs", cpus);
  if (efficient > 0) text += fmt::format(" ({} of them E cores)", efficient);
  return text;
}

}  // namespace octavo
