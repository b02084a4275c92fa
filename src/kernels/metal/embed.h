// embed.h (metal) - launches embed.metal.
#pragma once

#include "kernels/metal/encoder.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::metal {

// out: [tokens, layout.cols], allocated. scale: rounded to out's dtype already.
void run_embed(const mx::array& tokens, const PackedLayout& layout, const mx::array& table,
               float scale, const mx::array& out, Encoder& encoder);

}  // namespace octavo::metal
