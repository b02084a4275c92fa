// system_memory.h - how much memory this process may use, and uses.
#pragma once

#include <cstdint>

namespace octavo {

// The smaller of the machine's memory and this cgroup's limit.
uint64_t usable_memory_bytes();

// Resident memory of this process now.
uint64_t resident_bytes();

}  // namespace octavo
