// slow_tests.h - whether tests run in full, as tools/battery.sh runs them: OCTAVO_SLOW_TESTS is set.
#pragma once

#include <cstdlib>

namespace octavo {

inline bool slow_tests() { return std::getenv("OCTAVO_SLOW_TESTS") != nullptr; }

}  // namespace octavo
