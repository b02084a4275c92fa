#include "kernels/runtime/kernel_path.h"

#include <mutex>

namespace octavo {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace

std::map<std::string, int64_t> launch_counts() {
  const std::lock_guard lock(counters().mutex);
  return counters().counts;
}

void count_launch(const char* kernel) {
  const std::lock_guard lock(counters().mutex);
  ++counters().counts[kernel];
}

}  // namespace octavo
