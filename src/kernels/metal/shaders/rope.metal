// rope.metal - rotary position embedding, rotate-half form.
//
// A thread processes one pair of dimensions (or one unchanged dimension) of kRopeHeads heads of a
// token, so that several heads share a cosine and a sine; grid (groups of kRopeThreads pairs,
// groups of heads, tokens). No threadgroup memory. Limit: bandwidth, 2 * heads * dim * sizeof(T)
// per token.
#include "kernels/metal/shaders/numbers.msl"
#include "kernels/metal/row_params.h"

using namespace octavo::metal;

constant bool kHasAxes [[function_constant(0)]];

template <typename T>
[[kernel]] void rope_rows(
    const device T* x [[buffer(0)]],
    const device int* positions [[buffer(1)]],  // [tokens], or [axes, tokens]
    const device float* inverse_frequencies [[buffer(2)]],
    const device int* axes [[buffer(3), function_constant(kHasAxes)]],  // [pairs]
    device T* out [[buffer(4)]],
    constant RopeParams& params [[buffer(5)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const int item = int(group.x) * kRopeThreads + int(thread_index);
  const int pairs = params.pairs;
  if (item >= params.dim - pairs) return;
  const int first_head = int(group.y) * kRopeHeads;
  const int end_head = min(first_head + kRopeHeads, params.heads);
  const ulong row = ulong(group.z) * params.heads;
  if (item >= pairs) {
    for (int head = first_head; head < end_head; ++head) {
      const ulong at = (row + head) * params.dim + pairs + item;
      out[at] = x[at];
    }
    return;
  }
  const int position = positions[kHasAxes ? uint(axes[item]) * groups.z + group.z : group.z];
  const float angle = float(position) * inverse_frequencies[item];
  const float cosine = precise::cos(angle) * params.magnitude;
  const float sine = precise::sin(angle) * params.magnitude;
  for (int head = first_head; head < end_head; ++head) {
    const ulong at = (row + head) * params.dim + item;
    const float a = float(x[at]);
    const float b = float(x[at + pairs]);
    out[at] = T(a * cosine - b * sine);
    out[at + pairs] = T(b * cosine + a * sine);
  }
}
