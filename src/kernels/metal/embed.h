// embed.h (metal) - launches embed.metal.
#pragma once

#include "kernels/metal/encoder.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::metal {

struct EmbedCall {
  mx::array tokens;  // [T] int32
  mx::array table;   // packed
  PackedLayout layout;
  float scale = 1;  // already rounded to the dtype of out
  mx::array out;    // [T, layout.cols], allocated
};
void embed(const EmbedCall& call, Encoder& encoder);

}  // namespace octavo::metal
