#include "kernels/metal/embed.h"

#include "kernels/metal/embed_params.h"
#include "kernels/metal/weights.h"

namespace octavo::metal {

void embed(const EmbedCall& call, Encoder& encoder) {
  if (call.tokens.size() == 0) return;
  const PackedLayout& layout = call.layout;
  const auto threads = static_cast<uint32_t>(layout.padded_cols / kUnitCols * 2);
  Launch launch("embed_rows", {dtype_of(call.out)});
  set_format(launch, layout);
  launch.input("tokens", call.tokens)
      .input("table", call.table)
      .output("out", call.out)
      .bytes("params", EmbedParams{.cols = static_cast<int32_t>(layout.cols),
                                   .padded_cols = static_cast<int32_t>(layout.padded_cols),
                                   .strip_bytes = static_cast<int32_t>(layout.strip_bytes()),
                                   .scale = call.scale})
      .grid({(threads + kEmbedThreads - 1) / kEmbedThreads,
             static_cast<uint32_t>(call.tokens.size())},
            {kEmbedThreads});
  encoder.run(launch);
}

}  // namespace octavo::metal
