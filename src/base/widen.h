// widen.h - converts int shapes to 64-bit sizes.
#pragma once

#include <cstdint>

namespace octavo {

// `value` must not be negative.
constexpr uint64_t widen(int value) { return static_cast<uint64_t>(value); }

}  // namespace octavo
