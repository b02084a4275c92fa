// thread_plan.h - how many compute threads this process starts, and on which CPUs.
#pragma once

#include <optional>
#include <vector>

#include "base/topology/topology.h"

namespace octavo {

// What the system lets a process use.
struct CpuLimits {
  std::vector<CpuId> affinity{};               // empty: every CPU
  std::optional<std::vector<CpuId>> cpuset{};  // of the cgroup
  std::optional<double> quota{};               // of the cgroup, in cores
};

CpuLimits current_cpu_limits();

enum class EfficientCores { kUsed, kLeftOut };

struct ThreadPlan {
  // One CPU per thread, at most one of each core, ordered so that threads of a NUMA node are
  // neighbours. Never empty.
  std::vector<CpuId> cpus;
  int nodes = 1;          // NUMA nodes of these CPUs
  int allowed_cores = 1;  // cores with a CPU that the process may use, regardless of the quota

  int threads() const { return static_cast<int>(cpus.size()); }
};

// Plans one thread per physical core. If the quota allows fewer, E cores go first, then whole nodes.
ThreadPlan plan_threads(const Topology& topology, const CpuLimits& limits,
                        EfficientCores efficient = EfficientCores::kUsed);

// The plan for this process on this machine.
ThreadPlan plan_threads();

}  // namespace octavo
