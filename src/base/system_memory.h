// system_memory.h - the memory that this process may use, and does use.
#pragma once

#include <cstdint>

namespace octavo {

// Returns the smaller of the machine's memory and the cgroup's limit.
uint64_t usable_memory_bytes();

// Returns the current resident memory of this process.
uint64_t resident_bytes();

}  // namespace octavo
