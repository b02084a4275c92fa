#include "base/topology/thread_plan.h"

#include <algorithm>
#include <set>
#include <thread>
#include <tuple>

#ifdef __linux__
#include <sched.h>

#include <memory>
#endif

#include "base/cgroup.h"

namespace octavo {
namespace {

#ifdef __linux__
std::vector<CpuId> affinity_of_this_thread() {
  const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(kMaxCpus), release);
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  std::vector<CpuId> cpus;
  if (set == nullptr || ::sched_getaffinity(0, size, set.get()) != 0) return cpus;
  for (CpuId id = 0; id < kMaxCpus; ++id) {
    if (CPU_ISSET_S(static_cast<size_t>(id), size, set.get())) cpus.push_back(id);
  }
  return cpus;
}
#else
std::vector<CpuId> affinity_of_this_thread() { return {}; }
#endif

bool allows(const std::vector<CpuId>& list, CpuId id) {
  return list.empty() || std::ranges::binary_search(list, id);
}

// The CPUs that the process may use, fastest first, then node by node.
std::vector<Cpu> usable_cpus(const Topology& topology, const CpuLimits& limits) {
  std::vector<Cpu> cpus = topology.cpus;
  if (cpus.empty()) {
    for (CpuId id : limits.affinity) cpus.push_back({.id = id, .core = id});
  }
  // A cpuset of another machine or an offline CPU may leave nothing; then the limit is not valid.
  const auto keep = [&](const std::vector<CpuId>& allowed) {
    std::vector<Cpu> kept;
    std::ranges::copy_if(cpus, std::back_inserter(kept),
                         [&](const Cpu& cpu) { return allows(allowed, cpu.id); });
    if (!kept.empty()) cpus = std::move(kept);
  };
  keep(limits.affinity);
  if (limits.cpuset) keep(*limits.cpuset);
  std::ranges::sort(cpus, {}, [](const Cpu& cpu) {
    return std::tuple(cpu.is_efficient, cpu.node, cpu.package, cpu.core, cpu.id);
  });
  return cpus;
}

}  // namespace

CpuLimits current_cpu_limits() {
  const CgroupLimits cgroup = cgroup_limits();
  return {.affinity = affinity_of_this_thread(), .cpuset = cgroup.cpus, .quota = cgroup.cores};
}

ThreadPlan plan_threads(const Topology& topology, const CpuLimits& limits,
                        EfficientCores efficient) {
  std::vector<Cpu> chosen;  // the first CPU of each core
  std::set<CpuId> cores;
  for (const Cpu& cpu : usable_cpus(topology, limits)) {
    if (cores.insert(cpu.core).second) chosen.push_back(cpu);
  }
  ThreadPlan plan;
  plan.allowed_cores = std::max(1, static_cast<int>(chosen.size()));
  // A process that may use only E cores uses them.
  if (efficient == EfficientCores::kLeftOut && !chosen.empty() && !chosen.front().is_efficient)
    std::erase_if(chosen, [](const Cpu& cpu) { return cpu.is_efficient; });
  const double quota = std::max(1.0, limits.quota.value_or(kMaxCpus));
  if (quota < static_cast<double>(chosen.size())) chosen.resize(static_cast<size_t>(quota));
  std::ranges::sort(chosen, {}, [](const Cpu& cpu) {
    return std::tuple(cpu.node, cpu.package, cpu.is_efficient, cpu.core);
  });
  std::set<int> nodes;
  for (const Cpu& cpu : chosen) {
    plan.cpus.push_back(cpu.id);
    nodes.insert(cpu.node);
  }
  if (plan.cpus.empty()) plan.cpus.push_back(0);
  plan.nodes = std::max(1, static_cast<int>(nodes.size()));
  return plan;
}

ThreadPlan plan_threads() {
  Topology topology = read_topology();
  CpuLimits limits = current_cpu_limits();
  if (topology.cpus.empty() && limits.affinity.empty()) {
    const auto count = static_cast<CpuId>(std::max(1U, std::thread::hardware_concurrency()));
    for (CpuId id = 0; id < count; ++id) limits.affinity.push_back(id);
  }
  return plan_threads(topology, limits);
}

}  // namespace octavo
