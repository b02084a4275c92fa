// activation_params.h - the activations, for shaders. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kActivationSilu = 0;
METAL_CONSTANT int kActivationGeluTanh = 1;
METAL_CONSTANT int kActivationBoundedSilu = 2;
METAL_CONSTANT int kActivationRelu = 3;
METAL_CONSTANT int kActivationGelu = 4;

}  // namespace metal
}  // namespace octavo
