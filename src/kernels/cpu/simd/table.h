// table.h - gathers the kernels of one instruction set. Included once by each simd/isa_*.cpp. No
// MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/attention_amx.h"
#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/qkv_rows.h"

namespace octavo::cpu::OCTAVO_ISA {

#ifdef OCTAVO_ISA_AMX
OCTAVO_INLINE bool uses_tiles(const AttentionItem& item) {
  const PageLayout& l = item.job->layout;
  return item.job->dtype == DType::kBFloat16 && (l.int8 || l.dtype == DType::kBFloat16);
}
static int64_t attention_scratch(const AttentionItem& item) {
  return uses_tiles(item) ? amx_attention_scratch(item) : generic_attention_scratch(item);
}
static void attend(const AttentionItem& item, std::byte* scratch) {
  return uses_tiles(item) ? amx_attend(item, scratch) : generic_attend(item, scratch);
}
#else
static int64_t attention_scratch(const AttentionItem& item) {
  return generic_attention_scratch(item);
}
static void attend(const AttentionItem& item, std::byte* scratch) { generic_attend(item, scratch); }
#endif

const KernelTable& kernel_table() {
  static constexpr KernelTable table{
#ifdef OCTAVO_ISA_AMX
      .configure_tiles = configure_tiles,
      .pairs_bf16_values = true,
#endif
      .attention_scratch = attention_scratch,
      .attend = attend,
      .partial_floats = partial_floats,
      .merge_partials = merge_partials,
      .qkv_rows = qkv_rows,
  };
  return table;
}

}  // namespace octavo::cpu::OCTAVO_ISA
