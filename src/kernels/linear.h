// linear.h - y = x W^T + bias for every weight format.
#pragma once

#include <optional>

#include "kernels/kernel_path.h"
#include "kernels/weight.h"

namespace octavo {

struct LinearOptions {
  std::optional<mx::array> bias;       // [weight.rows]
  std::optional<mx::Dtype> out_dtype;  // default: x's
  KernelPath path = KernelPath::kNative;
};

// x: [..., weight.cols] float32, float16 or bfloat16, contiguous. Returns [..., weight.rows]. Sums
// are kept in float32, and a row's bits do not depend on the rows beside it.
mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options = {});

// Rows of an embedding table. tokens: [T] int32, each below table.rows. Returns [T, table.cols] in
// `dtype`.
mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype,
                KernelPath path = KernelPath::kNative);

namespace reference {
mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options);
mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype);
}  // namespace reference

}  // namespace octavo
