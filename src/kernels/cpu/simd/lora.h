// lora.h - adds scale * B (A x) to the sums of a product, before its bias. Every output of a row is one
// chain of fused multiply-adds over the ranks in ascending order, so other rows do not matter. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rows of one slot that share a pass over B: their chains fit in registers.
inline constexpr int kLoraRows = 4;

struct LoraRow {
  const float* inner;  // [rank]
  Vec* sums;           // of 16 outputs
};

template <DType Type, int Rows>
OCTAVO_INLINE void add_lora_rows(const LoraGroupJob& group, const std::byte* b,
                                 const LoraRow* rows) {
  Vec chains[Rows];
  for (int i = 0; i < Rows; ++i) chains[i] = zero();
  for (int64_t r = 0; r < group.rank; ++r) {
    const Vec weights = load_as(b, Type, r * kStripRows);
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) chains[i] = fma(weights, set1(rows[i].inner[r]), chains[i]);
  }
  const Vec scale = set1(group.scale);
  for (int i = 0; i < Rows; ++i) *rows[i].sums = fma(chains[i], scale, *rows[i].sums);
}

template <DType Type>
OCTAVO_INLINE void add_lora_some(const LoraGroupJob& group, int64_t strip, int count,
                                 const LoraRow* rows) {
  const std::byte* b = group.b + strip * group.rank * kStripRows * element_bytes(Type);
  if (count == 4) return add_lora_rows<Type, 4>(group, b, rows);
  if (count == 3) return add_lora_rows<Type, 3>(group, b, rows);
  if (count == 2) return add_lora_rows<Type, 2>(group, b, rows);
  add_lora_rows<Type, 1>(group, b, rows);
}

// The rows of [first, first + rows) in one block of 16; sums: of row `first` on.
template <DType Type>
OCTAVO_INLINE void add_lora_block(const LoraJob& job, int64_t strip, int64_t block, int64_t first,
                                  int64_t rows, Vec* sums) {
  const int32_t end = job.block_begins[block + 1];
  for (int32_t at = job.block_begins[block]; at < end;) {
    const int32_t index = job.groups_of[job.block_places[at]];
    const LoraGroupJob& group = job.groups[index];
    LoraRow some[kLoraRows];
    int count = 0;
    for (; at < end && count < kLoraRows; ++at) {
      const int32_t place = job.block_places[at];
      if (job.groups_of[place] != index) break;
      const int64_t row = job.order[place] - first;
      if (row >= 0 && row < rows) some[count++] = {job.inner_of(group, place), sums + row};
    }
    if (count > 0 && group.rank > 0) add_lora_some<Type>(group, strip, count, some);
  }
}

template <DType Type>
static void add_lora_of(const LoraJob& job, int64_t strip, int64_t first, int64_t rows, Vec* sums) {
  for (int64_t block = first / kRowBlock; block * kRowBlock < first + rows; ++block)
    add_lora_block<Type>(job, strip, block, first, rows, sums);
}

// Rows [first, first + rows) of the product, of one strip. Rows without an adapter are not touched.
static void add_lora(const LoraJob& job, int64_t strip, int64_t first, int64_t rows, Vec* sums) {
  first += job.first_row;
  switch (job.dtype) {
    case DType::kFloat32:
      return add_lora_of<DType::kFloat32>(job, strip, first, rows, sums);
    case DType::kFloat16:
      return add_lora_of<DType::kFloat16>(job, strip, first, rows, sums);
    default:
      return add_lora_of<DType::kBFloat16>(job, strip, first, rows, sums);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
