#include "kernels/metal/norm.h"

#include "kernels/metal/norm_params.h"

namespace octavo::metal {

void norm(const NormCall& call, Encoder& encoder) {
  const int cols = call.x.shape(-1) / call.groups;
  if (call.x.size() == 0) return;
  Launch launch("norm_rows", {dtype_of(call.x), dtype_of(call.weight)});
  launch.constant("kIsLayer", call.kind == Norm::kLayer)
      .constant("kHasBias", call.bias.has_value())
      .input("x", call.x)
      .input("weight", call.weight)
      .optional_input("bias", call.bias)
      .output("out", call.out)
      .bytes("params", NormParams{.cols = cols, .groups = call.groups, .eps = call.eps})
      .grid({static_cast<uint32_t>(call.x.size()) / static_cast<uint32_t>(cols)}, {kNormThreads});
  encoder.run(launch);
}

}  // namespace octavo::metal
