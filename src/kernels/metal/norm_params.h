// norm_params.h - shared by norm.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kNormThreads = 256;  // per row

struct NormParams {
  int32_t cols;
  int32_t groups;  // of weights: row r has those of group r % groups
  float eps;
};

}  // namespace metal
}  // namespace octavo
