// decode_codes.h - units of quantised weights as float32. No MLX.
#pragma once

#include "kernels/cpu/simd/code_lines.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The 64 codes of one row of a unit as numbers before scale and bias.
template <CodeKind Kind>
OCTAVO_INLINE void row_numbers(const CodeShape& shape, const uint8_t* lines, int row,
                               float* numbers) {
  const auto zero_code = static_cast<float>(shape.zero);
  for (int q = 0; q < kQuads; ++q) {
    for (int k = 0; k < 4; ++k) {
      const uint8_t code = lines[q * kCodeLine + 4 * row + k];
      numbers[4 * q + k] =
          has_table(Kind) ? shape.table->number[code] : static_cast<float>(code) - zero_code;
    }
  }
}

template <CodeKind Kind>
static void decode_units(const CodeShape& shape, const std::byte* strip, int64_t stride,
                         float* out) {
  const Vec factor = set1(has_table(Kind) ? shape.table->factor : 1);
  alignas(64) uint8_t lines[kQuads * kCodeLine];
  alignas(64) float scales[4][2][kStripRows];
  alignas(64) float numbers[kUnitCols];
  for (int64_t u = 0; u < shape.units; ++u) {
    const UnitPlace place = unit_place(shape, strip, u);
    for (int part = 0; part < shape.parts; ++part) {
      const GroupScale group = group_scale(shape.scale_kind, place.scales, place.group + part);
      store(scales[part][0], has_table(Kind) ? mul(group.scale, factor) : group.scale);
      store(scales[part][1], group.bias);
    }
    stored_unit<Kind>(reinterpret_cast<const uint8_t*>(place.codes), lines);
    for (int row = 0; row < kStripRows; ++row) {
      row_numbers<Kind>(shape, lines, row, numbers);
      for (int i = 0; i < 4; ++i) {
        const auto& part = scales[i * shape.parts / 4];
        const Vec number = load(numbers + 16 * i);
        const Vec scale = set1(part[0][row]);
        store(out + row * stride + u * kUnitCols + 16 * i,
              has_table(Kind) ? mul(scale, number) : fma(scale, number, set1(part[1][row])));
      }
    }
  }
}

// A whole strip as [16 rows][padded_cols] float32.
static void decode_strip_f32(const PackedView& weight, int64_t strip_index, float* out) {
  const PackedLayout& layout = weight.layout;
  const std::byte* strip = weight.strip(strip_index);
  if (layout.bits == 0) {
    const auto* tiles = reinterpret_cast<const uint16_t*>(strip);
    for (int64_t k = 0; k < layout.padded_cols; k += 32) {
      for (int64_t row = 0; row < kStripRows; ++row) {
        const uint16_t* from = tiles + k * kStripRows + row * 32;
        store(out + row * layout.padded_cols + k, load_as(from, layout.dtype, 0));
        store(out + row * layout.padded_cols + k + 16, load_as(from, layout.dtype, 16));
      }
    }
    return;
  }
  const CodeShape shape = code_shape(layout);
  with_kind(code_kind(shape), [&]<CodeKind Kind>() OCTAVO_INLINE_LAMBDA {
    decode_units<Kind>(shape, strip, layout.padded_cols, out);
  });
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
