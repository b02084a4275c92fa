#include "engine/step_memory.h"

#include <mlx/memory.h>

#include "kernels/runtime/device_buffer.h"

namespace octavo {

void limit_step_memory(uint64_t device_bytes, uint64_t step_bytes, uint64_t ahead_bytes,
                       uint64_t image_bytes) {
  const uint64_t counted = kMlxCountsDeviceBuffers ? device_bytes : 0;
  mx::set_memory_limit(counted + image_bytes + (step_bytes - ahead_bytes) / 2);
  mx::set_cache_limit(step_bytes);
}

}  // namespace octavo
