// weight_params.h - the layout of packed weights (kernels/weights/packed_weight.h), for Metal
// kernels. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kUnitRows = 16;    // outputs per strip
METAL_CONSTANT int kUnitInputs = 64;  // inputs per unit, which one simdgroup decodes at once
METAL_CONSTANT int kTileInputs = 32;  // inputs per tile of dense 16-bit weights

// kDenseType
METAL_CONSTANT int kDenseFloat = 0;
METAL_CONSTANT int kDenseHalf = 1;
METAL_CONSTANT int kDenseBfloat = 2;

// kScaleKind: the values of ScaleKind
METAL_CONSTANT int kScalePairF32 = 1;
METAL_CONSTANT int kScalePairF16 = 2;
METAL_CONSTANT int kScalePairBF16 = 3;
METAL_CONSTANT int kScaleF16 = 4;
METAL_CONSTANT int kScaleSuper = 5;
METAL_CONSTANT int kScaleSuperSigned = 6;
METAL_CONSTANT int kScaleE8M0 = 7;
METAL_CONSTANT int kScaleSuperNibbles = 8;

// kTable: the values of CodeTable
METAL_CONSTANT int kTableNone = 0;
METAL_CONSTANT int kTableE2M1 = 1;
METAL_CONSTANT int kTableIQ4 = 2;
METAL_CONSTANT int kTableIQ3_S = 3;
METAL_CONSTANT int kTableIQ3_XXS = 4;
METAL_CONSTANT int kTableIQ2 = 5;

// A quantized strip consists of blocks of inputs: the scales of a block, then its units.
inline int block_inputs(int scale_kind, int group_size) {
  if (scale_kind == kScaleSuper || scale_kind == kScaleSuperSigned ||
      scale_kind == kScaleSuperNibbles)
    return 256;
  if (scale_kind == kScaleE8M0) return 2 * kUnitInputs;
  return group_size > kUnitInputs ? group_size : kUnitInputs;
}

// Bytes of a block's scales, with their padding.
inline int block_scale_bytes(int scale_kind, int group_size) {
  const int groups = block_inputs(scale_kind, group_size) / group_size;
  int row_bytes = groups;  // kScaleE8M0
  if (scale_kind == kScalePairF32) row_bytes = 8 * groups;
  if (scale_kind == kScalePairF16 || scale_kind == kScalePairBF16) row_bytes = 4 * groups;
  if (scale_kind == kScaleF16) row_bytes = 2 * groups;
  if (scale_kind == kScaleSuper) row_bytes = 4 + 2 * groups;
  if (scale_kind == kScaleSuperSigned) row_bytes = 2 + groups;
  if (scale_kind == kScaleSuperNibbles) row_bytes = 4 + groups;
  return (kUnitRows * row_bytes + 63) / 64 * 64;
}

// Bytes of a unit's codes.
inline int unit_bytes(int bits) { return kUnitRows * kUnitInputs / 8 * bits; }

}  // namespace metal
}  // namespace octavo
