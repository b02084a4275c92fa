// thread_name.h - names a thread for ps, top -H and debuggers.
#pragma once

#include <pthread.h>

namespace octavo {

// At most 15 letters.
inline void name_this_thread(const char* name) {
#ifdef __APPLE__
  pthread_setname_np(name);
#else
  pthread_setname_np(pthread_self(), name);
#endif
}

}  // namespace octavo
