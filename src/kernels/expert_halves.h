// expert_halves.h - expert_mlp() in two steps, for ranks that each have a part of every expert's
// outputs and exchange the activations between the steps.
#pragma once

#include "kernels/expert_mlp.h"

namespace octavo {

// x: [T, hidden] contiguous. Returns activation(gate(x)) * up(x) for the experts of each token:
// [T, top_k, gate.weight.rows] of x's dtype, where [t][k] is of expert routing.ids[t][k].
// `gate` and `up` may have a part of the outputs.
mx::array expert_activations(const mx::array& x, const Routing& routing,
                             const ExpertProjection& gate, const ExpertProjection& up,
                             Activation activation, KernelPath path = KernelPath::kNative);

// inner: [T, top_k, down.weight.cols] of expert_activations(), contiguous. Returns
// [T, down.weight.rows] of inner's dtype: the bits of expert_mlp(). `down` may have a part of the
// outputs; shared and residual, [T, down.weight.rows], are then of the same part. No adapters.
mx::array expert_outputs(const mx::array& inner, const Routing& routing,
                         const ExpertProjection& down, const ExpertOptions& options = {});

namespace reference {
mx::array expert_activations(const mx::array& x, const Routing& routing,
                             const ExpertProjection& gate, const ExpertProjection& up,
                             Activation activation);
mx::array expert_outputs(const mx::array& inner, const Routing& routing,
                         const ExpertProjection& down, const ExpertOptions& options);
}  // namespace reference

}  // namespace octavo
