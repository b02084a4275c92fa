#include "kernels/cpu/add_scaled.h"

#include "kernels/cpu/clones.h"

namespace octavo::cpu {

OCTAVO_CLONES
void add_scaled(float factor, const float* from, int64_t count, float* sums) {
  for (int64_t k = 0; k < count; ++k) sums[k] += factor * from[k];
}

}  // namespace octavo::cpu
