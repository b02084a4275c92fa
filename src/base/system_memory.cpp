#include "base/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include "base/cgroup.h"

namespace octavo {
namespace {

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

uint64_t usable_memory_bytes() {
  const uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes();
  return std::min(bytes, cgroup_limits().memory_bytes.value_or(bytes));
}

uint64_t resident_bytes() {
#ifdef __APPLE__
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&info),
                &count) != KERN_SUCCESS) {
    return 0;
  }
  return info.resident_size;
#else
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  file >> total >> resident;
  return resident * page_bytes();
#endif
}

}  // namespace octavo
