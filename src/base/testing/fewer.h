// fewer.h - the number of cases of a randomised test: a tenth under sanitizers, which compile without optimisation.
#pragma once

namespace octavo {

constexpr int fewer_if_sanitized(int cases) {
#ifdef OCTAVO_SANITIZED
  return cases / 10;
#else
  return cases;
#endif
}

}  // namespace octavo
