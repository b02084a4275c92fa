// activation.h - the activations between an MLP's two products.
#pragma once

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/activation_kind.h"

namespace octavo {

// activation(gate) * up, element by element, computed in float32. Both are [..., D], contiguous and
// of one dtype.
mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation,
                           KernelPath path = KernelPath::kNative);

// The same with columns [first, first + D) of a wider `up`.
//   gate: [T, D]
//   up:   [T, W]
mx::array gated_activation(const mx::array& gate, const mx::array& up, int first,
                           Activation activation, KernelPath path = KernelPath::kNative);

// activation(x) of an MLP without a gate. x: [..., D], contiguous. Not kBoundedSilu.
mx::array activation(const mx::array& x, Activation activation,
                     KernelPath path = KernelPath::kNative);

namespace reference {
mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation);
}

}  // namespace octavo
