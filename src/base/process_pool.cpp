// The process's compute pool and its options.
#include <cstdlib>

#include "base/compute_pool.h"
#include "base/topology/thread_binding.h"

namespace octavo {
namespace {

ComputeOptions& compute_options() {
  static ComputeOptions options;
  return options;
}

int wanted_threads() {
  if (compute_options().threads >= 1) return compute_options().threads;
  const char* wanted = std::getenv("OCTAVO_THREADS");
  return wanted != nullptr ? std::atoi(wanted) : 0;
}

ThreadBinding process_binding() {
  const char* bind = std::getenv("OCTAVO_THREADS_BIND");
  return bind_threads(plan_threads(), {.threads = wanted_threads(),
                                       .pinned = compute_options().pinned,
                                       .bind = bind != nullptr ? bind : ""});
}

}  // namespace

void set_compute_options(const ComputeOptions& options) { compute_options() = options; }

ComputePool& compute_pool() {
  static const ThreadBinding binding = process_binding();
  static ComputePool pool(binding.threads, binding.cpus);
  return pool;
}

}  // namespace octavo
