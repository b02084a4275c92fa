#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace octavo {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "octavo: internal check failed at %s:%d: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace octavo
