#include "kernels/cpu/simd/argmax.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/logit_blocks.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void add_logit_kernels(KernelTable& table) {
  table.argmax = argmax;
  table.block_maxima = block_maxima;
  table.weigh = weigh;
  table.sums_from = sums_from;
  table.keep_from = keep_from;
  table.indices_within = indices_within;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
