#include "kernels/metal/gated_delta.h"

#include <cmath>
#include <string>

#include "kernels/metal/row_tiles.h"
#include "kernels/metal/state_places.h"

namespace octavo::metal {
namespace {

DeltaParams params_of(const GatedDeltaCall& call) {
  const StateGeometry& geometry = call.geometry;
  return {.places = head_places(geometry, call.pages.shape(1), call.table.shape(1)),
          .qkv_stride = call.qkv.shape(1),
          .gates_stride = call.gates.shape(1),
          .z_column = call.z_column,
          .a_column = call.a_column,
          .b_column = call.b_column,
          .key_heads = call.key_heads,
          .value_heads = geometry.heads,
          .k_dim = geometry.k_dim,
          .v_dim = geometry.v_dim,
          .q_scale = 1 / std::sqrt(static_cast<float>(geometry.k_dim)),
          .norm_eps = call.norm_eps};
}

}  // namespace

void gated_delta(const GatedDeltaCall& call, Encoder& encoder) {
  static_assert(kStateLargestDim == kLargestStateDim && kStateDimStep % kStateRows == 0);
  const DeltaParams params = params_of(call);
  const DType type = dtype_of(call.qkv);
  // The rule's result before its norm, in float32.
  const mx::array y = encoder.temporary(call.out.shape(), mx::float32);
  Launch rule("gated_delta", {type, static_cast<int>(groups_of(params.k_dim, kLanes))});
  rule.output("pages", call.pages)
      .input("cu_seqlens", call.cu_seqlens)
      .input("table", call.table)
      .input("qkv", call.qkv)
      .input("gates", call.gates)
      .input("a_log", call.a_log)
      .input("dt_bias", call.dt_bias)
      .output("y", y)
      .bytes("params", params)
      .grid({groups_of(params.v_dim, kStateRows * kStateSimdgroups),
             static_cast<uint32_t>(params.value_heads), static_cast<uint32_t>(call.table.shape(0))},
            {kLanes * kStateSimdgroups});
  encoder.run(rule);
  Launch norm("gated_delta_norm", {type, dtype_of(call.norm)});
  norm.input("y", y)
      .input("gates", call.gates)
      .input("norm", call.norm)
      .output("out", call.out)
      .bytes("params", params)
      .grid({groups_of(params.value_heads, kStateSimdgroups),
             static_cast<uint32_t>(call.qkv.shape(0))},
            {kLanes * kStateSimdgroups});
  encoder.run(norm);
}

}  // namespace octavo::metal
