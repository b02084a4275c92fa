#include "base/topology/thread_binding.h"

#include <fmt/format.h>

#include "base/error.h"

namespace octavo {
namespace {

ThreadBinding bind_to_list(const BindingOptions& options) {
  const auto cpus = parse_cpu_list(options.bind);
  if (!cpus || cpus->empty()) {
    throw SetupError(fmt::format(
        "OCTAVO_THREADS_BIND={}: set it to auto, nobind or a list of CPUs like 0-31,64-95",
        options.bind));
  }
  const auto count = static_cast<int>(cpus->size());
  if (options.threads > count) {
    throw SetupError(fmt::format(
        "OCTAVO_THREADS_BIND={} has {} CPUs for {} threads; list more CPUs or lower --threads",
        options.bind, count, options.threads));
  }
  return {.threads = options.threads >= 1 ? options.threads : count, .cpus = *cpus};
}

}  // namespace

ThreadBinding bind_threads(const ThreadPlan& plan, const BindingOptions& options) {
  const int threads = options.threads >= 1 ? options.threads : plan.threads();
  if (options.bind.empty() || options.bind == "auto") {
    const bool one_per_core = threads == plan.allowed_cores && threads == plan.threads();
    const bool bound = options.pinned || (plan.nodes > 1 && one_per_core);
    return {.threads = threads, .cpus = bound ? plan.cpus : std::vector<CpuId>{}};
  }
  if (options.bind == "nobind") return {.threads = threads};
  return bind_to_list(options);
}

}  // namespace octavo
