// tile_digits.h - the rows of digits.h for the bfloat16 tile unit: scale * q itself. A q of 12 bits that
// comes from a bfloat16 number has at most 8 significant bits, so it is one again; and codes are small
// whole numbers, so the tile unit's sums are exact, as integers of less than 2^24 times the scale.
// No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include <type_traits>

#include "kernels/cpu/simd/digits.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Sixty-four inputs of up to 16 rows: bfloat16, of each four inputs the first, third, second, fourth, as
// code_panel.h has them. NaN if an input of the row is not finite.
struct alignas(64) TileUnit {
  uint16_t x[2][kRowBlock][kUnitCols / 2];
};

// A block of rows: all its units, so that tiles are loaded from adjacent lines, then the factors of
// digits.h as [factor][unit][row].
template <typename Byte>  // std::byte, or const
struct TileRows {
  Byte* block;
  int64_t units;

  // At row 0 of a unit.
  auto* factor(int64_t index, int64_t unit) const {
    using Float = std::conditional_t<std::is_const_v<Byte>, const float, float>;
    return reinterpret_cast<Float*>(block + units * int64_t{sizeof(TileUnit)}) +
           (index * units + unit) * kRowBlock;
  }
  auto* inputs() const {
    using Unit = std::conditional_t<std::is_const_v<Byte>, const TileUnit, TileUnit>;
    return reinterpret_cast<Unit*>(block);
  }
  // Of part `part` of each unit: [unit][row].
  const float* sums(int parts, int part) const { return factor(1 + sum_index(parts, part), 0); }
};
static_assert(sizeof(TileUnit) + sizeof(RowFactors) == sizeof(DigitUnit));

OCTAVO_INLINE void set_tile_row(const uint16_t* numbers, const TileRows<std::byte>& rows, int64_t u,
                                int64_t m) {
  const UnitPower power = unit_power(numbers);
  __m512i q[4];
  rounded_unit(numbers, power, q);
  const __m512 scale = _mm512_set1_ps(power.scale);
  const __m512i order = _mm512_set4_epi32(0x0f0e0b0a, 0x0d0c0908, 0x07060302, 0x05040100);
  for (int half = 0; half < 2; ++half) {
    const __m512bh pair =
        _mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_cvtepi32_ps(q[2 * half + 1]), scale),
                            _mm512_mul_ps(_mm512_cvtepi32_ps(q[2 * half]), scale));
    _mm512_store_si512(rows.inputs()[u].x[half][m],
                       _mm512_shuffle_epi8(reinterpret_cast<__m512i>(pair), order));
  }
  set_factors(q, power, rows.factor(0, u) + m, rows.units * kRowBlock);
}

static void prepare_tile_rows(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  const int64_t units = prepared_cols(job.cols) / kUnitCols;
  prepare_units(job, row_begin, row_end,
                [&](const uint16_t* numbers, std::byte* block, int64_t u, int64_t m)
                    OCTAVO_INLINE_LAMBDA { set_tile_row(numbers, {block, units}, u, m); });
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
