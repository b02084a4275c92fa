// gate_rows.h - multiplies a layer's output by a gate.
#pragma once

#include <cstdint>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

enum class Gate : uint8_t { kPlain, kSigmoid };

// Columns of a matrix [T, W], starting at `first`.
struct Columns {
  mx::array rows;
  int first = 0;
};

// x * gate, or x * sigmoid(gate), over `count` columns of each, computed in float32. Both have
// one dtype. Returns [T, count].
mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind,
                    KernelPath path = KernelPath::kNative);

namespace reference {
mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind);
}

}  // namespace octavo
