#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/attention_amx.h"
#include "kernels/cpu/simd/families.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

#ifdef OCTAVO_SIMD_AMX
OCTAVO_INLINE bool uses_tiles(const AttentionPiece& item) {
  const PageLayout& l = item.job->layout;
  return item.job->dtype == DType::kBFloat16 && (l.int8 || l.dtype == DType::kBFloat16);
}
static int64_t attention_scratch(const AttentionPiece& item) {
  return uses_tiles(item) ? amx_attention_scratch(item) : generic_attention_scratch(item);
}
static void attend(const AttentionPiece& item, std::byte* scratch) {
  return uses_tiles(item) ? amx_attend(item, scratch) : generic_attend(item, scratch);
}
#else
static int64_t attention_scratch(const AttentionPiece& item) {
  return generic_attention_scratch(item);
}
static void attend(const AttentionPiece& item, std::byte* scratch) {
  generic_attend(item, scratch);
}
#endif

void add_attention_kernels(KernelTable& table) {
#ifdef OCTAVO_SIMD_AMX
  table.pairs_bf16_values = true;
#endif
  table.attention_scratch = attention_scratch;
  table.attend = attend;
  table.partial_floats = partial_floats;
  table.merge_partials = merge_partials;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
