// code_panel.h - units of codes as bfloat16 numbers in the order of the tile unit's B operand: 32 lines
// of [16 outputs][2 inputs]. Codes are small whole numbers, so none is rounded. Of four inputs, lines
// have the first and third, then the second and fourth, because these are what 16 bits of
// packed codes have in common. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/code_fold.h"
#include "kernels/cpu/simd/digits.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kPanelNumbers = kUnitCols * kStripRows;

// A sum of 64 products is exact in float32: a code plus its offset has at most 7 bits, or 7 and a sign.
static_assert(int64_t{128} * kLargestQ * kUnitCols < 1 << 24);

// Writes units of one weight: code + offset (code_fold.h). If the offset is 2^bits, the code's bits are
// the upper ones of a bfloat16 number's fraction; other numbers come from a table.
class PanelWriter {
 public:
  explicit PanelWriter(const CodeShape& shape) {
    const CodeKind kind = code_kind(shape);
    const CodeFold fold = code_fold(shape);
    // Repeated, so that bits above a code's own have no effect.
    const int codes = 1 << (shape.bits < 6 ? shape.bits : 6);
    for (int i = 0; i < 64; ++i) {
      const int code = fold.table != nullptr ? fold.table[i % kTableCodes] : i % codes;
      const float number = static_cast<float>(code) + fold.offset;
      uint32_t bits;
      std::memcpy(&bits, &number, sizeof(bits));
      table_[i] = static_cast<uint16_t>(bits >> 16);  // exact
    }
    offset_ = fold.offset;
    with_kind(kind, [&]<CodeKind Kind>() OCTAVO_INLINE_LAMBDA {
      constexpr int kBits = bits_of(Kind);
      if constexpr (kBits == 8 || has_table(Kind)) {
        write_ = write_wide<Kind, false>;
      } else if (fold.has_bias) {
        write_ = kBits == 2 || kBits == 4 ? write_small<Kind> : write_wide<Kind, true>;
      } else {
        write_ = write_wide<Kind, false>;
      }
    });
  }

  OCTAVO_INLINE void write(const std::byte* unit, uint16_t* panel) const {
    write_(*this, reinterpret_cast<const uint8_t*>(unit), panel);
  }

 private:
  // Sixteen bits with a code's lowest bit at kFrom, as code + 2^bits.
  template <CodeKind Kind, int kFrom>
  static OCTAVO_INLINE __m512i placed(__m512i words) {
    constexpr int kBits = bits_of(Kind);
    constexpr int kPlace = 7 - kBits;  // below the fraction's upper bits
    const __m512i moved = kFrom > kPlace   ? _mm512_srli_epi16(words, kFrom - kPlace)
                          : kFrom < kPlace ? _mm512_slli_epi16(words, kPlace - kFrom)
                                           : words;
    const __m512i mask = _mm512_set1_epi16(((1 << kBits) - 1) << kPlace);
    const __m512i power = _mm512_set1_epi16((127 + kBits) << 7);
    return _mm512_ternarylogic_epi32(moved, mask, power, 0xea);  // (moved & mask) | power
  }

  // Thirty-two codes, one per 16 bits, as numbers from the table.
  template <CodeKind Kind>
  OCTAVO_INLINE __m512i numbers(__m512i codes, __m512i first, __m512i second) const {
    constexpr int kBits = bits_of(Kind);
    if constexpr (kBits <= 5) return _mm512_permutexvar_epi16(codes, first);
    if constexpr (kBits == 6) return _mm512_permutex2var_epi16(first, codes, second);
    const __m512 offset = _mm512_set1_ps(offset_);
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(codes)));
    const __m512 high =
        _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(codes, 1)));
    return reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(_mm512_add_ps(high, offset), _mm512_add_ps(low, offset)));
  }

  // Codes of 2 or 4 bits: each 16 bits hold two lines' numbers of several quads.
  template <CodeKind Kind>
  static void write_small(const PanelWriter&, const uint8_t* unit, uint16_t* panel) {
    constexpr int kBits = bits_of(Kind);
    constexpr int kLines = 2 * kBits;
    const auto field = [&]<int kField>(__m512i words, int line) OCTAVO_INLINE_LAMBDA {
      uint16_t* out = panel + (line + kField * kLines) * 2 * 32;
      _mm512_store_si512(out, placed<Kind, kField * kBits>(words));
      _mm512_store_si512(out + 32, placed<Kind, kField * kBits + 8>(words));
    };
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) {
      const __m512i words = line_load(unit + line * kCodeLine);
      field.template operator()<0>(words, line);
      field.template operator()<1>(words, line);
      if constexpr (kBits == 2) {
        field.template operator()<2>(words, line);
        field.template operator()<3>(words, line);
      }
    }
  }

  template <CodeKind Kind, bool Placed>
  static void write_wide(const PanelWriter& writer, const uint8_t* unit, uint16_t* panel) {
    const __m512i first = _mm512_load_si512(writer.table_);
    const __m512i second = _mm512_load_si512(writer.table_ + 32);
    const auto quad = [&]<int kQuad>() OCTAVO_INLINE_LAMBDA {
      const Line line = stored_quad<Kind, kQuad>(unit);
      uint16_t* out = panel + kQuad * 2 * 32;
      if constexpr (Placed) {
        _mm512_store_si512(out, placed<Kind, 0>(line));
        _mm512_store_si512(out + 32, placed<Kind, 8>(line));
      } else {
        const __m512i low = _mm512_and_si512(line, _mm512_set1_epi16(0xff));
        const __m512i high = _mm512_srli_epi16(line, 8);
        _mm512_store_si512(out, writer.numbers<Kind>(low, first, second));
        _mm512_store_si512(out + 32, writer.numbers<Kind>(high, first, second));
      }
    };
    const auto all = [&]<int... kQuad>(std::integer_sequence<int, kQuad...>)
                         OCTAVO_INLINE_LAMBDA { (quad.template operator()<kQuad>(), ...); };
    all(std::make_integer_sequence<int, kQuads>());
  }

  alignas(64) uint16_t table_[64];
  float offset_ = 0;
  void (*write_)(const PanelWriter&, const uint8_t*, uint16_t*) = nullptr;
};

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
