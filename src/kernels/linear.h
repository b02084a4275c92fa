// linear.h - y = x W^T + bias for every weight format, fused with norms, gates and residuals.
#pragma once

#include <optional>
#include <span>

#include "kernels/lora.h"
#include "kernels/norm.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/types/activation_kind.h"
#include "kernels/weights/weight.h"

namespace octavo {

// A linear layer: weight and optional bias [weight.rows].
struct Projection {
  Weight weight;
  std::optional<mx::array> bias;
};

struct LinearOptions {
  std::optional<mx::array> bias = {};      // [weight.rows]; linear() only
  std::optional<NormSpec> norm = {};       // applied to x first, rounded to x's dtype
  std::optional<mx::array> residual = {};  // added last; the output's shape and dtype
  float scale = 1;                         // on the product and its bias; not in gated_linear()
  float soft_cap = 0;  // > 0: y becomes soft_cap * tanh(y / soft_cap); without gate and residual
  std::optional<mx::Dtype> out_dtype = {};  // default: x's
  // Adapters, added to the product before its bias; nothing if no row of the step has one.
  std::optional<LoraOptions> lora = {};
  KernelPath path = KernelPath::kNative;
};

// x: [..., weight.cols] float32, float16 or bfloat16, contiguous. Returns [..., weight.rows]. Sums
// are kept in float32, and a row's bits do not depend on other rows.
mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options = {});

// Several layers of one x in one launch; their outputs are concatenated along the last axis.
mx::array joined_linear(const mx::array& x, std::span<const Projection> layers,
                        const LinearOptions& options = {});

// activation(gate(x)) * up(x), two matrices of one shape. The products are not rounded in between.
mx::array gated_linear(const mx::array& x, const Projection& gate, const Projection& up,
                       Activation activation, const LinearOptions& options = {});

// Rows of an embedding table, times `scale`, which is rounded to `dtype` first, as in training.
// tokens: [T] int32, each below table.rows. Returns [T, table.cols] in `dtype`. `lora`: adapters of the
// table as a weight, one layer: scale * B[token] A is added to a row before it is multiplied by
// `scale`. Not on Metal.
mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype,
                KernelPath path = KernelPath::kNative, float scale = 1,
                const std::optional<LoraOptions>& lora = std::nullopt);

namespace reference {
mx::array joined_linear(const mx::array& x, std::span<const Projection> layers,
                        const LinearOptions& options);
mx::array gated_linear(const mx::array& x, const Projection& gate, const Projection& up,
                       Activation activation, const LinearOptions& options);
mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype, float scale,
                const std::optional<LoraOptions>& lora);
}  // namespace reference

}  // namespace octavo
