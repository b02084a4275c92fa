#include "kernels/metal/gated_delta.h"

#include <cmath>
#include <string>

#include "kernels/metal/row_tiles.h"
#include "kernels/metal/state_places.h"
#include "kernels/state_inputs.h"

namespace octavo::metal {
namespace {

constexpr int kLanes = 32;

DeltaParams params_of(const StateGeometry& geometry, const cpu::DeltaJob& job, int page_bytes) {
  return {.places = head_places(geometry, page_bytes),
          .qkv_stride = static_cast<int32_t>(job.qkv_stride),
          .gates_stride = static_cast<int32_t>(job.gates_stride),
          .z_column = static_cast<int32_t>(job.z_column),
          .a_column = static_cast<int32_t>(job.a_column),
          .b_column = static_cast<int32_t>(job.b_column),
          .key_heads = static_cast<int32_t>(job.key_heads),
          .value_heads = geometry.heads,
          .k_dim = geometry.k_dim,
          .v_dim = geometry.v_dim,
          .q_scale = 1 / std::sqrt(static_cast<float>(geometry.k_dim)),
          .norm_eps = job.norm_eps};
}

}  // namespace

void gated_delta(const StateGeometry& geometry, const cpu::DeltaJob& job,
                 const std::vector<mx::array>& inputs, const std::vector<mx::array>& outputs,
                 Encoder& encoder) {
  static_assert(kDeltaLargestDim == kLargestStateDim && kStateDimStep % kDeltaRows == 0);
  const mx::array& table = inputs[2];
  const mx::array* input = &inputs[kStateInputs];
  const DeltaParams params = params_of(geometry, job, inputs[0].shape(1));
  const auto rows = static_cast<uint32_t>(input[0].shape(0));
  // What the rule gives before its norm, in float32.
  const mx::array y = encoder.temporary(outputs[0].shape(), mx::float32);
  Launch rule("gated_delta",
              {msl_type(job.dtype), std::to_string(groups_of(params.k_dim, kLanes))});
  rule.output("pages", outputs[1])
      .input("cu_seqlens", inputs[1])
      .input("table", table)
      .input("qkv", input[0])
      .input("gates", input[1])
      .input("a_log", input[2])
      .input("dt_bias", input[3])
      .output("y", y)
      .bytes("params", params)
      .grid({groups_of(params.v_dim, kDeltaRows * kDeltaSimdgroups),
             static_cast<uint32_t>(params.value_heads), static_cast<uint32_t>(table.shape(0))},
            {kLanes * kDeltaSimdgroups});
  encoder.run(rule);
  Launch norm("gated_delta_norm", {msl_type(job.dtype), msl_type(job.norm_dtype)});
  norm.input("y", y)
      .input("gates", input[1])
      .input("norm", input[4])
      .output("out", outputs[0])
      .bytes("params", params)
      .grid({groups_of(params.value_heads, kDeltaSimdgroups), rows}, {kLanes * kDeltaSimdgroups});
  encoder.run(norm);
}

}  // namespace octavo::metal
