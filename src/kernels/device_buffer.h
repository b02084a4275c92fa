// device_buffer.h - long-lived memory of our own, seen by MLX as an array: pages and packed
// weights.
#pragma once

#include <cstddef>

#include "kernels/mlx.h"

namespace octavo {

// An uninitialised array whose memory is page-aligned, never moves, is never donated to another
// operation and is not counted by MLX's memory limit. On the CPU its pages become resident when
// touched. Throws SetupError when the machine has no room.
mx::array make_device_buffer(mx::Shape shape, mx::Dtype dtype);

// Writes to every memory page of an array of make_device_buffer, with all cores.
void touch_device_buffer(mx::array& buffer);

}  // namespace octavo
