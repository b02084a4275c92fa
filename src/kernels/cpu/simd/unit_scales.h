// unit_scales.h - where a quantised strip keeps its units, and their scales and biases. No MLX.
#pragma once

#include <bit>

#include "kernels/cpu/simd/vec.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// A weight's strip as the inner loops need it: no calls, no divisions.
struct CodeShape {
  int64_t units;
  int64_t scale_bytes;  // of a block
  int64_t unit_bytes;
  int64_t block_bytes;
  int64_t low_bytes;
  int block_shift;   // logarithm of the units of a block
  int parts;         // groups in a unit: 1, 2 or 4
  int groups_shift;  // logarithm of the units of a group; 1 for groups of 128
  int bits;
  int zero;
  ScaleKind scale_kind;
  const CodeNumbers* table;  // nullptr: none
};

static inline CodeShape code_shape(const PackedLayout& layout) {
  const auto log2 = [](int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); };
  return {.units = layout.padded_cols / kUnitCols,
          .scale_bytes = layout.scale_bytes(),
          .unit_bytes = layout.unit_bytes(),
          .block_bytes = layout.block_bytes(),
          .low_bytes = layout.low_bytes(),
          .block_shift = log2(layout.block_cols() / kUnitCols),
          .parts = layout.group_size < kUnitCols ? kUnitCols / layout.group_size : 1,
          .groups_shift = layout.group_size > kUnitCols ? log2(layout.group_size / kUnitCols) : 0,
          .bits = layout.bits,
          .zero = layout.zero,
          .scale_kind = layout.scale_kind,
          .table = numbers_of(layout.table)};
}

// A unit's codes, and the scales of its block.
struct UnitPlace {
  const std::byte* scales;
  const std::byte* codes;
  int64_t group;  // the first of the unit, within the block
};

OCTAVO_INLINE UnitPlace unit_place(const CodeShape& shape, const std::byte* strip, int64_t unit) {
  const std::byte* block = strip + (unit >> shape.block_shift) * shape.block_bytes;
  const int64_t within = unit & ((int64_t{1} << shape.block_shift) - 1);
  return {block, block + shape.scale_bytes + within * shape.unit_bytes,
          (within >> shape.groups_shift) * shape.parts};
}

// One group of a strip: a number of row n is scale[n] * (code - zero) + bias[n], or scale[n] times the
// table's factor and number.
struct GroupScale {
  Vec scale;
  Vec bias;
};

OCTAVO_INLINE bool has_bias(ScaleKind kind) {
  return kind == ScaleKind::kPairF32 || kind == ScaleKind::kPairF16 ||
         kind == ScaleKind::kPairBF16 || kind == ScaleKind::kSuper ||
         kind == ScaleKind::kSuperNibbles;
}

OCTAVO_INLINE Vec half_powers(const uint8_t* exponents) {
  alignas(64) float powers[kStripRows];
  for (int n = 0; n < kStripRows; ++n) {
    // 2^(e - 128); below e = 2 not a normal float.
    const uint32_t e = exponents[n];
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    std::memcpy(powers + n, &bits, sizeof(bits));
  }
  return load(powers);
}

// Groups past the row's last one have the scales of zero bytes, and inputs of zero.
OCTAVO_INLINE GroupScale group_scale(ScaleKind kind, const std::byte* scales, int64_t group) {
  const auto* halves = reinterpret_cast<const uint16_t*>(scales);
  switch (kind) {
    case ScaleKind::kPairF32: {
      const auto* floats = reinterpret_cast<const float*>(scales) + group * 32;
      return {load(floats), load(floats + 16)};
    }
    case ScaleKind::kPairF16:
      return {load_f16(halves + group * 32), load_f16(halves + group * 32 + 16)};
    case ScaleKind::kPairBF16:
      return {load_bf16(halves + group * 32), load_bf16(halves + group * 32 + 16)};
    case ScaleKind::kF16:
      return {load_f16(halves + group * 16), zero()};
    case ScaleKind::kSuper: {
      const auto* small = reinterpret_cast<const uint8_t*>(scales + 64) + group * 32;
      return {mul(load_f16(halves), load_u8(small)),
              sub(zero(), mul(load_f16(halves + 16), load_u8(small + 16)))};
    }
    case ScaleKind::kSuperNibbles: {
      const auto* both = reinterpret_cast<const uint8_t*>(scales + 64) + group * 16;
      alignas(16) uint8_t low[kStripRows], high[kStripRows];
      for (int n = 0; n < kStripRows; ++n) {
        low[n] = both[n] & 15;
        high[n] = both[n] >> 4;
      }
      return {mul(load_f16(halves), load_u8(low)),
              sub(zero(), mul(load_f16(halves + 16), load_u8(high)))};
    }
    case ScaleKind::kSuperSigned: {
      const auto* small = reinterpret_cast<const int8_t*>(scales + 32) + group * 16;
      return {mul(load_f16(halves), load_i8(small)), zero()};
    }
    case ScaleKind::kE8M0:
      return {half_powers(reinterpret_cast<const uint8_t*>(scales) + group * 16), zero()};
    case ScaleKind::kNone:
      break;
  }
  return {zero(), zero()};
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
