// add_rows.h - adds a sublayer's result to the residual stream.
#pragma once

#include <optional>

#include "kernels/norm.h"
#include "kernels/runtime/kernel_path.h"

namespace octavo {

struct AddRowsOptions {
  std::optional<NormSpec> norm = {};  // of y's rows; not rounded before the sum
  float scale = 1;                    // on y, after the norm
  float out_scale = 1;                // on the sum
  KernelPath path = KernelPath::kNative;
};

// (x + scale * norm(y)) * out_scale, row by row, computed in float32. x and y: [..., D] contiguous,
// of one shape and dtype. A float16 sum saturates instead of becoming infinite: residual streams of
// models trained in bfloat16 exceed float16's range.
mx::array add_rows(const mx::array& x, const mx::array& y, const AddRowsOptions& options = {});

namespace reference {
mx::array add_rows(const mx::array& x, const mx::array& y, const AddRowsOptions& options);
}

}  // namespace octavo
