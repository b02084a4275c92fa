// bind_thread.h - confines a thread to one CPU.
#pragma once

#include "base/topology/cpu_list.h"

namespace octavo {

// Lets the calling thread run only on `cpu`. Does nothing if the system does not allow that, and on
// macOS.
void bind_thread(CpuId cpu);

}  // namespace octavo
