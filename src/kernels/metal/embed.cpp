#include "kernels/metal/embed.h"

#include "kernels/metal/embed_params.h"
#include "kernels/metal/weights.h"

namespace octavo::metal {

void run_embed(const mx::array& tokens, const PackedLayout& layout, const mx::array& table,
               float scale, const mx::array& out, Encoder& encoder) {
  if (tokens.size() == 0) return;
  const auto threads = static_cast<uint32_t>(layout.padded_cols / kUnitCols * 2);
  Launch launch("embed_rows", {msl_type(dtype_of(out))});
  set_format(launch, layout);
  launch.input("tokens", tokens)
      .input("table", table)
      .output("out", out)
      .bytes("params", EmbedParams{.cols = static_cast<int32_t>(layout.cols),
                                   .padded_cols = static_cast<int32_t>(layout.padded_cols),
                                   .strip_bytes = static_cast<int32_t>(layout.strip_bytes()),
                                   .scale_bytes = static_cast<int32_t>(layout.scale_bytes()),
                                   .scale = scale})
      .grid({(threads + kEmbedThreads - 1) / kEmbedThreads, static_cast<uint32_t>(tokens.size())},
            {kEmbedThreads});
  encoder.run(launch);
}

}  // namespace octavo::metal
