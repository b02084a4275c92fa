#include "kernels/metal/mamba2.h"

#include "kernels/metal/row_tiles.h"
#include "kernels/metal/state_places.h"

namespace octavo::metal {

void mamba2(const Mamba2Call& call, Encoder& encoder) {
  const StateGeometry& geometry = call.geometry;
  const MambaParams params{
      .places = head_places(geometry, call.pages.shape(1), call.table.shape(1)),
      .xbc_stride = call.xbc.shape(1),
      .gates_stride = call.gates.shape(1),
      .z_column = call.z_column,
      .dt_column = call.dt_column,
      .heads = geometry.heads,
      .groups = call.groups,
      .state_dim = geometry.k_dim,
      .head_dim = geometry.v_dim};
  Launch launch("mamba2",
                {dtype_of(call.xbc), static_cast<int>(groups_of(params.state_dim, kLanes))});
  launch.output("pages", call.pages)
      .input("cu_seqlens", call.cu_seqlens)
      .input("table", call.table)
      .input("xbc", call.xbc)
      .input("gates", call.gates)
      .input("a_log", call.a_log)
      .input("dt_bias", call.dt_bias)
      .input("d", call.d)
      .output("out", call.out)
      .bytes("params", params)
      .grid({groups_of(params.head_dim, kStateRows * kStateSimdgroups),
             static_cast<uint32_t>(params.heads), static_cast<uint32_t>(call.table.shape(0))},
            {kLanes * kStateSimdgroups});
  encoder.run(launch);
}

}  // namespace octavo::metal
