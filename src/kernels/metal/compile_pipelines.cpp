#include "kernels/metal/compile_pipelines.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo::metal {

void compile_on_threads(std::span<const PipelineKey> keys, int threads,
                        const std::function<void(const PipelineKey&)>& compile,
                        const CompileProgress& progress) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < keys.size(); i = next++) {
        compile(keys[i]);
        const std::lock_guard lock(mutex);
        progress(++done, keys.size());
      }
    } catch (...) {
      next = keys.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace octavo::metal
