#include "base/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

namespace octavo {
namespace {

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

uint64_t usable_memory_bytes() {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes();
#ifdef __linux__
  // cgroup v2, then v1; "max" and v1's huge default both mean no limit and fail or exceed the
  // minimum.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    uint64_t limit = 0;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
#endif
  return bytes;
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
