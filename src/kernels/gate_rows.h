// gate_rows.h - products of columns: gates on what a layer has made.
#pragma once

#include <cstdint>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

enum class Gate : uint8_t { kPlain, kSigmoid };

// Columns of a matrix [T, W], from `first` on.
struct Columns {
  mx::array rows;
  int first = 0;
};

// x * gate, or x * sigmoid(gate), over `count` columns of each, in float32 inside. Both of one
// dtype. Returns [T, count].
mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind,
                    KernelPath path = KernelPath::kNative);

namespace reference {
mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind);
}

}  // namespace octavo
