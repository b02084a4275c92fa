#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/latent_rows.h"
#include "kernels/cpu/simd/qkv_rows.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

void add_page_write_kernels(KernelTable& table) {
  table.qkv_rows = qkv_rows;
  table.latent_rows = latent_rows;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
