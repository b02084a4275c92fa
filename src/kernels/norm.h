// norm.h - RMS normalisation.
#pragma once

#include "kernels/kernel_path.h"
#include "kernels/mlx.h"

namespace octavo {

// y = x / sqrt(mean(x^2) + eps) * weight over the last axis, in float32 inside, in x's dtype
// outside. x: [..., D] contiguous   weight: [D], any float type
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps,
                   KernelPath path = KernelPath::kNative);

namespace reference {
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps);
}

}  // namespace octavo
