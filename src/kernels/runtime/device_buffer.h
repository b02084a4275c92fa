// device_buffer.h - long-lived memory outside MLX's allocator, wrapped as an MLX array: pages and
// packed weights.
#pragma once

#include <cstddef>

#include "kernels/runtime/mlx.h"

namespace octavo {

// Whether MLX's memory limit and peak count arrays of make_device_buffer: its Metal allocator,
// which a Mac's CPU device uses too, does.
#ifdef __APPLE__
inline constexpr bool kMlxCountsDeviceBuffers = true;
#else
inline constexpr bool kMlxCountsDeviceBuffers = false;
#endif

// Returns an uninitialised array whose memory is page-aligned, never moves and is never donated to
// another operation. On the CPU its pages become resident when touched. Throws SetupError if the
// machine does not have enough memory.
mx::array make_device_buffer(mx::Shape shape, mx::Dtype dtype);

// Writes to every memory page of an array of make_device_buffer, with all cores.
void touch_device_buffer(mx::array& buffer);

}  // namespace octavo
