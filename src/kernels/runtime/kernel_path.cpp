#include "kernels/runtime/kernel_path.h"

#include <mutex>

namespace octavo {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, std::atomic<int64_t>, std::less<>> counts;
};

Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace

std::map<std::string, int64_t> launch_counts() {
  const std::lock_guard lock(counters().mutex);
  return {counters().counts.begin(), counters().counts.end()};
}

std::atomic<int64_t>& launch_counter(std::string_view kernel) {
  const std::lock_guard lock(counters().mutex);
  auto& counts = counters().counts;
  const auto found = counts.find(kernel);
  return found != counts.end() ? found->second : counts[std::string(kernel)];
}

void count_launch(std::string_view kernel) {
  launch_counter(kernel).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace octavo
