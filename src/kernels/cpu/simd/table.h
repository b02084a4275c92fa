// table.h - gathers the kernels of one instruction set. Included once by each simd/isa_*.cpp. No
// MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/add_rows.h"
#include "kernels/cpu/simd/argmax.h"
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/attention_amx.h"
#include "kernels/cpu/simd/causal_conv.h"
#include "kernels/cpu/simd/expert_ops.h"
#include "kernels/cpu/simd/gate_rows.h"
#include "kernels/cpu/simd/gated_delta.h"
#include "kernels/cpu/simd/latent_rows.h"
#include "kernels/cpu/simd/linear_amx.h"
#include "kernels/cpu/simd/linear_dot.h"
#include "kernels/cpu/simd/logit_blocks.h"
#include "kernels/cpu/simd/qkv_rows.h"

namespace octavo::cpu::OCTAVO_ISA {

static int64_t prepared_bytes(int64_t rows, int64_t cols, Arithmetic arithmetic) {
#ifdef OCTAVO_ISA_AMX
  if (arithmetic == Arithmetic::kBFloat16) return amx_prepared_bytes(rows, cols);
#elif defined(OCTAVO_ISA_BF16)
  if (arithmetic == Arithmetic::kBFloat16) return rows * prepared_cols(cols) * 2;
#endif
  static_cast<void>(arithmetic);
  return rows * prepared_cols(cols) * 4;
}

static void prepare(const RowsJob& job, int64_t row_begin, int64_t row_end) {
#ifdef OCTAVO_ISA_AMX
  if (job.arithmetic == Arithmetic::kBFloat16) return amx_prepare(job, row_begin, row_end);
#elif defined(OCTAVO_ISA_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16) return prepare_rows_bf16(job, row_begin, row_end);
#endif
  prepare_rows_f32(job, row_begin, row_end);
}

static int64_t linear_scratch(const LinearJob& job, int64_t strips) {
#ifdef OCTAVO_ISA_AMX
  if (job.arithmetic == Arithmetic::kBFloat16) return amx_scratch(job, strips);
#elif defined(OCTAVO_ISA_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16) return dot_scratch<DotBF16>(job, strips);
#endif
  return dot_scratch<DotF32>(job, strips);
}

static void linear(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                   std::byte* scratch) {
#ifdef OCTAVO_ISA_AMX
  if (job.arithmetic == Arithmetic::kBFloat16)
    return linear_amx(job, strip_begin, strip_end, scratch);
#elif defined(OCTAVO_ISA_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16)
    return linear_dot<DotBF16>(job, strip_begin, strip_end, scratch);
#endif
  linear_dot<DotF32>(job, strip_begin, strip_end, scratch);
}

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
#endif
      .prepared_bytes = prepared_bytes,
      .prepare = prepare,
      .linear_scratch = linear_scratch,
      .linear = linear,
      .expert_scores = expert_scores,
      .add_weighted = add_weighted,
      .finish_sums = finish_sums,
      .norm_rows = norm_rows,
      .add_rows = add_rows,
      .gated = gated,
      .gate_rows = gate_rows,
      .argmax = argmax,
      .block_maxima = block_maxima,
      .weigh = weigh,
      .sums_from = sums_from,
      .keep_from = keep_from,
      .indices_within = indices_within,
#ifdef OCTAVO_ISA_AMX
      .pairs_bf16_values = true,
#endif
      .attention_scratch = attention_scratch,
      .attend = attend,
      .partial_floats = partial_floats,
      .merge_partials = merge_partials,
      .qkv_rows = qkv_rows,
      .conv_rows = conv_rows,
      .delta_gates = delta_gates,
      .delta_scratch = delta_scratch,
      .delta_head = delta_head,
      .latent_rows = latent_rows,
  };
  return table;
}

}  // namespace octavo::cpu::OCTAVO_ISA
