// Linux's description of the CPUs, in /sys/devices.
#ifndef __APPLE__

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>

#include "base/topology/topology.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::optional<std::vector<CpuId>> read_cpus(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return parse_cpu_list(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::optional<long> read_count(const fs::path& path) {
  std::ifstream file(path);
  long value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return value;
}

// The numbers N of folders `prefix`N in `folder`, like 0 and 1 of node0 and node1.
std::vector<int> numbered(const fs::path& folder, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_cpu_list(std::string_view(name).substr(prefix.size()));
    if (number && number->size() == 1) numbers.push_back(number->front());
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<CpuId> online_cpus(const fs::path& cpu_folder) {
  const auto online = read_cpus(cpu_folder / "online");
  if (online && !online->empty()) return *online;
  return numbered(cpu_folder, "cpu");
}

void read_nodes(const fs::path& node_folder, std::map<CpuId, Cpu>& cpus) {
  for (int node : numbered(node_folder, "node")) {
    const auto members = read_cpus(node_folder / ("node" + std::to_string(node)) / "cpulist");
    if (!members) continue;
    for (CpuId id : *members) {
      if (const auto found = cpus.find(id); found != cpus.end()) found->second.node = node;
    }
  }
}

void read_packages_and_cores(const fs::path& cpu_folder, std::map<CpuId, Cpu>& cpus) {
  // A core id is unique within a die of a package. Hypervisors may report -1 for all.
  std::map<std::tuple<long, long, long>, CpuId> first_of_core;
  for (auto& [id, cpu] : cpus) {
    const fs::path folder = cpu_folder / ("cpu" + std::to_string(id)) / "topology";
    cpu.package = static_cast<int>(read_count(folder / "physical_package_id").value_or(0));
    auto siblings = read_cpus(folder / "core_cpus_list");
    if (!siblings) siblings = read_cpus(folder / "thread_siblings_list");
    if (siblings && std::ranges::binary_search(*siblings, id)) {
      const auto first = std::ranges::find_if(
          *siblings, [&cpus = cpus](CpuId sibling) { return cpus.contains(sibling); });
      cpu.core = *first;  // at least the CPU itself is online
    } else if (const auto core = read_count(folder / "core_id")) {
      const long die = read_count(folder / "die_id").value_or(0);
      cpu.core = first_of_core.try_emplace({cpu.package, die, *core}, id).first->second;
    }
  }
  // Lists that contradict each other must not name a core that does not name itself.
  for (auto& [id, cpu] : cpus) {
    if (const CpuId first = cpus.at(cpu.core).core; first != cpu.core) cpu.core = id;
  }
}

// The speeds of the CPUs on a common scale, or none if the system does not report them for all.
std::map<CpuId, long> read_speeds(const fs::path& cpu_folder, const std::map<CpuId, Cpu>& cpus,
                                  const char* file) {
  std::map<CpuId, long> speeds;
  for (const auto& [id, cpu] : cpus) {
    const auto speed = read_count(cpu_folder / ("cpu" + std::to_string(id)) / file);
    if (!speed) return {};
    speeds[id] = *speed;
  }
  return speeds;
}

void find_efficient_cores(const fs::path& devices, std::map<CpuId, Cpu>& cpus) {
  // Intel's hybrid processors have one performance counter device per kind of core.
  const auto atoms = read_cpus(devices / "cpu_atom/cpus");
  const auto fast = read_cpus(devices / "cpu_core/cpus");
  if (atoms && fast && !fast->empty()) {
    for (CpuId id : *atoms) {
      if (const auto found = cpus.find(id); found != cpus.end()) found->second.is_efficient = true;
    }
    return;
  }
  const fs::path cpu_folder = devices / "system/cpu";
  std::map<CpuId, long> speeds = read_speeds(cpu_folder, cpus, "cpu_capacity");
  if (speeds.empty()) speeds = read_speeds(cpu_folder, cpus, "cpufreq/cpuinfo_max_freq");
  long fastest = 0;
  for (const auto& [id, speed] : speeds) fastest = std::max(fastest, speed);
  // The best cores of a server clock a little higher than the others, but those are fast cores too.
  for (const auto& [id, speed] : speeds) cpus.at(id).is_efficient = speed < fastest - fastest / 4;
}

}  // namespace

Topology read_topology(const fs::path& root) {
  const fs::path devices = root / "sys/devices";
  std::map<CpuId, Cpu> cpus;
  for (CpuId id : online_cpus(devices / "system/cpu")) cpus[id] = {.id = id, .core = id};
  read_packages_and_cores(devices / "system/cpu", cpus);
  read_nodes(devices / "system/node", cpus);
  find_efficient_cores(devices, cpus);
  Topology topology;
  for (const auto& [id, cpu] : cpus) topology.cpus.push_back(cpu);
  return topology;
}

}  // namespace octavo

#endif
