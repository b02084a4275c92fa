// table.h - gathers the kernels of one instruction set. Included once by each simd/isa_*.cpp. No
// MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_ISA {

const KernelTable& kernel_table() {
  static constexpr KernelTable table{};
  return table;
}

}  // namespace octavo::cpu::OCTAVO_ISA
