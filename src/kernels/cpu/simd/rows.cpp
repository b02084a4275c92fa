#include "kernels/cpu/simd/add_rows.h"
#include "kernels/cpu/simd/expert_ops.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/gate_rows.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void add_row_kernels(KernelTable& table) {
  table.norm_rows = norm_rows;
  table.add_rows = add_rows;
  table.gated = gated;
  table.gate_rows = gate_rows;
  table.expert_scores = expert_scores;
  table.add_weighted = add_weighted;
  table.finish_sums = finish_sums;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
