#include "kernels/cpu/simd/causal_conv.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/gated_delta.h"
#include "kernels/cpu/simd/mamba2.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void add_state_kernels(KernelTable& table) {
  table.conv_rows = conv_rows;
  table.delta_gates = delta_gates;
  table.delta_scratch = delta_scratch;
  table.delta_head = delta_head;
  table.mamba_gates = mamba_gates;
  table.mamba_scratch = mamba_scratch;
  table.mamba_head = mamba_head;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
