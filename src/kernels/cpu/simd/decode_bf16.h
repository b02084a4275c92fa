// decode_bf16.h - units of quantised weights as bfloat16 tiles, rounded to nearest. Codes of up
// to five bits are looked up: a (row, group) has at most 32 different numbers, so they are computed
// once per group and every weight costs one shift and one permute. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_BF16

#include "kernels/cpu/simd/decode_codes.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The numbers of codes 0..15 and 16..31 before scale and bias, repeated if there are fewer codes,
// so that bits above a code's own have no effect.
struct CodeTable {
  __m512 first;
  __m512 second;
};

OCTAVO_INLINE CodeTable code_table(const CodeShape& shape) {
  float values[32];
  const int codes = 1 << (shape.bits < 5 ? shape.bits : 5);
  for (int i = 0; i < 32; ++i) {
    const int code = i % codes;
    values[i] =
        shape.scale_kind == ScaleKind::kE8M0 ? kE2M1[code] : static_cast<float>(code - shape.zero);
  }
  return {_mm512_loadu_ps(values), _mm512_loadu_ps(values + 16)};
}

template <int Bits>
OCTAVO_INLINE __m512i lookup_table(const CodeTable& table, float scale, float bias) {
  const __m512 s = _mm512_set1_ps(scale);
  const __m512 b = _mm512_set1_ps(bias);
  if constexpr (Bits == 5) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_fmadd_ps(table.second, s, b),
                                                         _mm512_fmadd_ps(table.first, s, b)));
  } else {
    const __m256bh half = _mm512_cvtneps_pbh(_mm512_fmadd_ps(table.first, s, b));
    return _mm512_broadcast_i64x4(reinterpret_cast<__m256i>(half));
  }
}

// Indices of 32 inputs (half h of the unit) of one row.
template <int Bits>
OCTAVO_INLINE __m512i code_indices(const CodeShape& shape, const std::byte* unit, int row, int h) {
  constexpr int kLow = Bits >= 4 ? 4 : 2;
  const std::byte* low = unit + row * kUnitCols * kLow / 8;
  __m256i words;
  if constexpr (kLow == 4) {
    words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
  } else {
    words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low)));
  }
  // The low sixteen lanes take field 2 h, the high ones field 2 h + 1.
  const short first = static_cast<short>(2 * h * kLow);
  const __m512i shifts = _mm512_inserti64x4(_mm512_set1_epi16(first),
                                            _mm256_set1_epi16(static_cast<short>(first + kLow)), 1);
  __m512i index = _mm512_srlv_epi16(_mm512_broadcast_i64x4(words), shifts);
  if constexpr (Bits != kLow) {
    uint64_t high = 0;
    std::memcpy(&high, unit + shape.low_bytes + row * 8, sizeof(high));
    index = _mm512_and_si512(index, _mm512_set1_epi16((1 << kLow) - 1));
    index = _mm512_mask_add_epi16(index, static_cast<__mmask32>(high >> (32 * h)), index,
                                  _mm512_set1_epi16(1 << kLow));
  }
  return index;
}

// Prefetch distance from a unit. Lines are fetched one at a time between the rows, because a burst
// would wait for free line buffers.
inline constexpr int64_t kDecodeAhead = 4096;

// One unit of 16 rows as two tiles [16 rows][32 inputs].
template <int Bits>
OCTAVO_INLINE void decode_unit_lookup(const CodeShape& shape, const CodeTable& table,
                                      const UnitScales& scales, const std::byte* unit,
                                      uint16_t* out) {
  const int second = scale_part(shape, 2);
#pragma GCC unroll 16
  for (int row = 0; row < kStripRows; ++row) {
    if (row % 2 == 0) _mm_prefetch(unit + row * 8 * Bits + kDecodeAhead, _MM_HINT_T0);
    __m512i numbers = lookup_table<Bits>(table, scales.scale[0][row], scales.bias[0][row]);
    _mm512_store_si512(out + row * 32,
                       _mm512_permutexvar_epi16(code_indices<Bits>(shape, unit, row, 0), numbers));
    if (second != 0)
      numbers = lookup_table<Bits>(table, scales.scale[second][row], scales.bias[second][row]);
    _mm512_store_si512(out + 512 + row * 32,
                       _mm512_permutexvar_epi16(code_indices<Bits>(shape, unit, row, 1), numbers));
  }
}

// Sixteen 6-bit codes (inputs [16 i, 16 i + 16) of the unit) of one row as floats.
OCTAVO_INLINE __m512 six_bit_codes(const CodeShape& shape, const std::byte* unit, int row, int i) {
  const auto* low = reinterpret_cast<const __m256i*>(unit + row * 32);
  const auto* high = reinterpret_cast<const __m128i*>(unit + shape.low_bytes + row * 16);
  const __m256i four = _mm256_and_si256(
      _mm256_srl_epi16(_mm256_loadu_si256(low), _mm_cvtsi32_si128(4 * i)), _mm256_set1_epi16(15));
  const __m256i two = _mm256_and_si256(
      _mm256_srl_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(high)), _mm_cvtsi32_si128(2 * i)),
      _mm256_set1_epi16(3));
  const __m256i code = _mm256_or_si256(four, _mm256_slli_epi16(two, 4));
  return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(code));
}

// Codes that are too wide to look up.
template <int Bits>
OCTAVO_INLINE void decode_unit_wide(const CodeShape& shape, const UnitScales& scales,
                                    const std::byte* unit, uint16_t* out) {
  const __m512 zero_code = _mm512_set1_ps(static_cast<float>(shape.zero));
  const auto decode = [&](int row, int i) OCTAVO_INLINE_LAMBDA {
    __m512 code;
    if constexpr (Bits == 6) {
      code = six_bit_codes(shape, unit, row, i);
    } else {
      const auto* bytes = reinterpret_cast<const uint8_t*>(unit) + row * kUnitCols + 16 * i;
      code = shape.is_signed ? reg_load_i8(reinterpret_cast<const int8_t*>(bytes))
                             : reg_load_u8(bytes);
    }
    const int part = scale_part(shape, i);
    return _mm512_fmadd_ps(_mm512_set1_ps(scales.scale[part][row]), _mm512_sub_ps(code, zero_code),
                           _mm512_set1_ps(scales.bias[part][row]));
  };
  for (int row = 0; row < kStripRows; ++row) {
    for (int half = 0; half < 2; ++half) {
      const __m512bh pair = _mm512_cvtne2ps_pbh(decode(row, 2 * half + 1), decode(row, 2 * half));
      _mm512_store_si512(out + half * 512 + row * 32, reinterpret_cast<__m512i>(pair));
    }
  }
}

// One unit of a strip: two tiles.
OCTAVO_INLINE void decode_unit_bf16(const CodeShape& shape, const CodeTable& table,
                                    const std::byte* strip, int64_t u, uint16_t* out) {
  UnitScales scales;
  _mm_prefetch(strip + (u + 8) * shape.unit_scale_bytes, _MM_HINT_T0);
  read_unit_scales(shape, strip, u, scales);
  const std::byte* unit = strip + shape.scale_bytes + u * shape.unit_bytes;
  switch (shape.bits) {
    case 2:
      return decode_unit_lookup<2>(shape, table, scales, unit, out);
    case 3:
      return decode_unit_lookup<3>(shape, table, scales, unit, out);
    case 4:
      return decode_unit_lookup<4>(shape, table, scales, unit, out);
    case 5:
      return decode_unit_lookup<5>(shape, table, scales, unit, out);
    case 6:
      return decode_unit_wide<6>(shape, scales, unit, out);
    default:
      return decode_unit_wide<8>(shape, scales, unit, out);
  }
}

// A whole strip as tiles.
static void decode_strip_bf16(const PackedView& weight, int64_t strip_index, uint16_t* out) {
  const CodeShape shape = code_shape(weight.layout);
  const CodeTable table = code_table(shape);
  const std::byte* strip = weight.strip(strip_index);
  for (int64_t u = 0; u < shape.units; ++u)
    decode_unit_bf16(shape, table, strip, u, out + u * 1024);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
