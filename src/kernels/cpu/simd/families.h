// families.h - the kernel families of one instruction set. The build compiles each family's source
// file once per set; it fills in its entries of that set's table. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void add_linear_kernels(KernelTable& table);
void add_attention_kernels(KernelTable& table);
void add_page_write_kernels(KernelTable& table);
void add_row_kernels(KernelTable& table);
void add_logit_kernels(KernelTable& table);
void add_state_kernels(KernelTable& table);
void add_elementary_kernels(KernelTable& table);

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
