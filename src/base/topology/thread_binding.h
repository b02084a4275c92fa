// thread_binding.h - whether compute threads are bound to CPUs, and to which.
#pragma once

#include <string>
#include <vector>

#include "base/topology/thread_plan.h"

namespace octavo {

struct BindingOptions {
  int threads = 0;        // 0: as many as planned
  bool pinned = false;    // --pin-threads
  std::string bind = {};  // OCTAVO_THREADS_BIND; empty: auto
};

struct ThreadBinding {
  int threads = 1;
  std::vector<CpuId> cpus = {};  // of thread i; threads without one are not bound
};

// `bind` has the values of vLLM's VLLM_CPU_OMP_THREADS_BIND: "auto", "nobind", or a list of CPUs,
// each for one thread. "auto" binds if the plan spans several NUMA nodes and the threads are one per
// core: with fewer threads, another process may use the same cores. Throws SetupError for any other
// value, and if a list has fewer CPUs than `threads`.
ThreadBinding bind_threads(const ThreadPlan& plan, const BindingOptions& options);

}  // namespace octavo
