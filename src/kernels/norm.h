// norm.h - normalisation of rows.
#pragma once

#include <optional>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/norm_kind.h"

namespace octavo {

// kRms: y = x / sqrt(mean(x^2) + eps) * weight. kLayer: y = (x - mean) / sqrt(variance + eps) *
// weight + bias. Computed in float32, returned in x's dtype.
struct NormSpec {
  mx::array weight;  // [D], any float type
  float eps;
  Norm kind = Norm::kRms;
  std::optional<mx::array> bias = {};  // [D], of the weight's type; kLayer only
};

// x: [..., D] contiguous; normalises the last axis.
mx::array norm(const mx::array& x, const NormSpec& spec, KernelPath path = KernelPath::kNative);
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps,
                   KernelPath path = KernelPath::kNative);

// The same for each of `groups` equal parts of a row by itself; spec.weight is [D].
mx::array group_norm(const mx::array& x, const NormSpec& spec, int groups,
                     KernelPath path = KernelPath::kNative);

namespace reference {
mx::array norm(const mx::array& x, const NormSpec& spec);
mx::array group_norm(const mx::array& x, const NormSpec& spec, int groups);
}  // namespace reference

}  // namespace octavo
