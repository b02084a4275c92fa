#include "base/topology/bind_thread.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace octavo {

#ifdef __linux__

void bind_thread(CpuId cpu) {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  if (set == nullptr) return;
  const size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(size, set);
  CPU_SET_S(static_cast<size_t>(cpu), size, set);
  ::pthread_setaffinity_np(::pthread_self(), size, set);
  CPU_FREE(set);
}

#else

void bind_thread(CpuId) {}

#endif

}  // namespace octavo
