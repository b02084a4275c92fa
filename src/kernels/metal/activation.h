// activation.h - the value by which shaders know an activation. No MLX.
#pragma once

#include "base/error.h"
#include "kernels/metal/activation_params.h"
#include "kernels/types/activation_kind.h"

namespace octavo::metal {

// A function constant of the kernels that include activations.msl.
inline int shader_value(Activation activation) {
  switch (activation) {  // without a default, so that the compiler reports a missing activation
    case Activation::kSilu:
      return kActivationSilu;
    case Activation::kGelu:
      return kActivationGelu;
    case Activation::kGeluTanh:
      return kActivationGeluTanh;
    case Activation::kRelu:
      return kActivationRelu;
    case Activation::kBoundedSilu:
      return kActivationBoundedSilu;
  }
  OCTAVO_CHECK(false);
  return kActivationSilu;
}

}  // namespace octavo::metal
