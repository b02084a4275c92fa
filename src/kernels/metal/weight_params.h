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

}  // namespace metal
}  // namespace octavo
