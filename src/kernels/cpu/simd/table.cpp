#include "kernels/cpu/simd/families.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void fill_table(KernelTable& table) {
  add_linear_kernels(table);
  add_attention_kernels(table);
  add_page_write_kernels(table);
  add_row_kernels(table);
  add_logit_kernels(table);
  add_state_kernels(table);
  add_elementary_kernels(table);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
