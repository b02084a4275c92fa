#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/attention_amx.h"
#include "kernels/cpu/simd/attention_bf16.h"
#include "kernels/cpu/simd/families.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// bfloat16 has one arithmetic on every set; the tile unit computes it on those that have one.
OCTAVO_INLINE bool is_bf16(const AttentionPiece& item) {
  const PageLayout& l = item.job->layout;
  return item.job->dtype == DType::kBFloat16 && (l.int8 || l.dtype == DType::kBFloat16);
}

static int64_t attention_scratch(const AttentionPiece& item) {
  if (!is_bf16(item)) return generic_attention_scratch(item);
#ifdef OCTAVO_SIMD_AMX
  return amx_attention_scratch(item);
#else
  return bf16_attention_scratch(item);
#endif
}

static void attend(const AttentionPiece& item, std::byte* scratch) {
  if (!is_bf16(item)) return generic_attend(item, scratch);
#ifdef OCTAVO_SIMD_AMX
  amx_attend(item, scratch);
#else
  bf16_attend(item, scratch);
#endif
}

void add_attention_kernels(KernelTable& table) {
  table.attention_scratch = attention_scratch;
  table.attend = attend;
  table.partial_floats = partial_floats;
  table.merge_partials = merge_partials;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
