// code_fold.h - what a group's sum is multiplied with: its scale and bias, and the number that is added
// to every code (linear_codes.h). No MLX.
#pragma once

#include "kernels/cpu/simd/code_lines.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

struct CodeFold {
  bool has_bias;
  float offset;                    // added to every code
  float scale_factor;              // of the table
  const uint8_t* table = nullptr;  // its bytes
};

OCTAVO_INLINE CodeFold code_fold(const CodeShape& shape) {
  if (shape.table != nullptr)
    return {.has_bias = false,
            .offset = -static_cast<float>(shape.table->zero),
            .scale_factor = shape.table->factor,
            .table = shape.table->byte};
  if (!has_bias(shape.scale_kind))
    return {.has_bias = false, .offset = -static_cast<float>(shape.zero), .scale_factor = 1};
  return {.has_bias = true,
          .offset = shape.bits == 8 ? -128.0f : static_cast<float>(1 << shape.bits),
          .scale_factor = 1};
}

// The scale and bias of code + offset.
OCTAVO_INLINE GroupScale fold_scale(const CodeShape& shape, const CodeFold& fold,
                                    const UnitPlace& place, int part) {
  GroupScale group = group_scale(shape.scale_kind, place.scales, place.group + part);
  if (fold.scale_factor != 1) group.scale = mul(group.scale, set1(fold.scale_factor));
  if (fold.has_bias) group.bias = fma(set1(-fold.offset), group.scale, group.bias);
  return group;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
