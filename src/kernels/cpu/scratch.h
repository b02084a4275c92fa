// scratch.h - per-thread memory that pieces of work reuse. No MLX.
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
  kState,
  kConv,
  kInner,
  kSums,
  kLora,
  kCount,
};

// Returns at least `bytes` bytes, aligned to 64, that belong to the calling thread until its next
// call with the same use. The contents are unspecified.
std::byte* scratch(Scratch use, int64_t bytes);

}  // namespace octavo::cpu
