// embed_params.h - shared by embed.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kEmbedThreads = 64;  // per threadgroup

struct EmbedParams {
  int32_t cols;
  int32_t padded_cols;
  int32_t strip_bytes;
  float scale;
};

}  // namespace metal
}  // namespace octavo
