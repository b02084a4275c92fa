// widen.h - sizes are counted in 64 bits, shapes are ints.
#pragma once

#include <cstdint>

namespace octavo {

// `value` is not negative.
constexpr uint64_t widen(int value) { return static_cast<uint64_t>(value); }

}  // namespace octavo
