// step_memory.h - how much memory MLX may hold for steps. Engine thread only. Shows no MLX.
#pragma once

#include <cstdint>

namespace octavo {

// `device_bytes`: what MLX counts besides steps, if it counts device buffers. `step_bytes`: planned
// for steps, of which `ahead_bytes` for one that is queued. `image_bytes`: planned for images. MLX stops
// queueing while it holds more than half of the rest (kLayersInFlight).
void limit_step_memory(uint64_t device_bytes, uint64_t step_bytes, uint64_t ahead_bytes,
                       uint64_t image_bytes = 0);

}  // namespace octavo
