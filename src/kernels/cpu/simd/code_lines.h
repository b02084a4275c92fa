// code_lines.h - the codes of quantised weights as bytes: a line of 64 holds four inputs (a quad) of
// each of a strip's 16 rows (packed_weight.h). Integer dot products multiply lines. No MLX.
#pragma once

#include <utility>

#include "kernels/cpu/simd/unit_scales.h"

#if defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/line_avx512.h"
#elif defined(OCTAVO_SIMD_AVX2)
#include "kernels/cpu/simd/line_avx2.h"
#elif defined(OCTAVO_SIMD_NEON)
#include "kernels/cpu/simd/line_neon.h"
#else
#include "kernels/cpu/simd/line_scalar.h"
#endif

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kCodeLine = 64;
inline constexpr int kQuads = kUnitCols / 4;  // of a unit
inline constexpr int64_t kCodesAhead = 2048;  // prefetch distance from a unit

// How the codes of a unit are stored, and what they stand for.
enum class CodeKind : uint8_t { k2, k3, k4, k5, k6, k8, kE2M1, kTable3, kTable4 };

OCTAVO_INLINE CodeKind code_kind(const CodeShape& shape) {
  if (shape.table != nullptr) {
    if (shape.table == numbers_of(CodeTable::kE2M1)) return CodeKind::kE2M1;
    return shape.bits == 3 ? CodeKind::kTable3 : CodeKind::kTable4;
  }
  switch (shape.bits) {
    case 2:
      return CodeKind::k2;
    case 3:
      return CodeKind::k3;
    case 4:
      return CodeKind::k4;
    case 5:
      return CodeKind::k5;
    case 6:
      return CodeKind::k6;
    default:
      return CodeKind::k8;
  }
}

// Calls f with the kind as a template argument.
template <typename F>
OCTAVO_INLINE void with_kind(CodeKind kind, const F& f) {
  switch (kind) {
    case CodeKind::k2:
      return f.template operator()<CodeKind::k2>();
    case CodeKind::k3:
      return f.template operator()<CodeKind::k3>();
    case CodeKind::k4:
      return f.template operator()<CodeKind::k4>();
    case CodeKind::k5:
      return f.template operator()<CodeKind::k5>();
    case CodeKind::k6:
      return f.template operator()<CodeKind::k6>();
    case CodeKind::k8:
      return f.template operator()<CodeKind::k8>();
    case CodeKind::kE2M1:
      return f.template operator()<CodeKind::kE2M1>();
    case CodeKind::kTable3:
      return f.template operator()<CodeKind::kTable3>();
    case CodeKind::kTable4:
      return f.template operator()<CodeKind::kTable4>();
  }
}

constexpr int bits_of(CodeKind kind) {
  switch (kind) {
    case CodeKind::k2:
      return 2;
    case CodeKind::k3:
    case CodeKind::kTable3:
      return 3;
    case CodeKind::k5:
      return 5;
    case CodeKind::k6:
      return 6;
    case CodeKind::k8:
      return 8;
    default:
      return 4;
  }
}

// The largest byte of a line.
constexpr int largest_code(CodeKind kind) {
  switch (kind) {
    case CodeKind::kE2M1:
      return 24;
    case CodeKind::kTable3:
      return kLargestTableByte3;
    case CodeKind::kTable4:
      return kLargestTableByte;
    default:
      return (1 << bits_of(kind)) - 1;
  }
}

// Whether numbers come from a table (code_table.h).
constexpr bool has_table(CodeKind kind) {
  return kind == CodeKind::kE2M1 || kind == CodeKind::kTable3 || kind == CodeKind::kTable4;
}

// The bytes of CodeTable::kE2M1, known to the compiler.
alignas(16) inline constexpr uint8_t kE2M1Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                       12, 11, 10, 9,  8,  6,  4,  0};

// The stored bits of quad kQuad of a unit, one code per byte.
template <CodeKind Kind, int kQuad>
OCTAVO_INLINE Line stored_quad(const uint8_t* unit) {
  constexpr int kBits = bits_of(Kind);
  if constexpr (kBits == 8) {
    return line_load(unit + kQuad * kCodeLine);
  } else if constexpr (kBits >= 4) {
    const Line low = line_field<4 * (kQuad / 8), 15>(line_load(unit + kQuad % 8 * kCodeLine));
    if constexpr (kBits == 5) return line_add_bits<16>(low, unit + 8 * kCodeLine + kQuad * 8);
    if constexpr (kBits == 6)
      return line_or(low,
                     line_high_field<kQuad / 4>(line_load(unit + (8 + kQuad % 4) * kCodeLine)));
    return low;
  } else {
    const Line low = line_field<2 * (kQuad / 4), 3>(line_load(unit + kQuad % 4 * kCodeLine));
    if constexpr (kBits == 3) return line_add_bits<4>(low, unit + 4 * kCodeLine + kQuad * 8);
    return low;
  }
}

// The same as small integers that stand for the numbers. table: bytes of the table, if the kind has one.
template <CodeKind Kind, int kQuad>
OCTAVO_INLINE Line quad_codes(const uint8_t* unit, const uint8_t* table) {
  const Line stored = stored_quad<Kind, kQuad>(unit);
  if constexpr (Kind == CodeKind::kE2M1) return line_look_up(stored, kE2M1Codes);
  if constexpr (Kind == CodeKind::kTable3 || Kind == CodeKind::kTable4)
    return line_look_up(stored, table);
  return stored;
}

// All stored codes of a unit as lines in the order of the quads.
template <CodeKind Kind>
OCTAVO_INLINE void stored_unit(const uint8_t* unit, uint8_t* lines) {
  const auto all = [&]<int... kQuad>(std::integer_sequence<int, kQuad...>) OCTAVO_INLINE_LAMBDA {
    (line_store(lines + kQuad * kCodeLine, stored_quad<Kind, kQuad>(unit)), ...);
  };
  all(std::make_integer_sequence<int, kQuads>());
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
