// scratch.h - memory a thread reuses from one piece of work to the next. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {

// Uses that may overlap on one thread.
enum class Scratch : uint8_t {
  kRows,
  kPanels,
  kAttention,
  kPartials,
  kLogits,
  kWeights,
  kGates,
  kDelta,
  kConv,
  kInner,
  kSums,
  kCount,
};

// At least `bytes` bytes at an address divisible by 64, the calling thread's own until its next
// call with the same use. What they hold is left from before.
std::byte* scratch(Scratch use, int64_t bytes);

}  // namespace octavo::cpu
