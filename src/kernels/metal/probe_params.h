// probe_params.h - shared by the probes of the GPU's speed and their host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kProbeThreads = 256;  // per threadgroup
METAL_CONSTANT int kProbeReads = 64;     // of 16 bytes, per thread
METAL_CONSTANT int kProbeChains = 8;     // independent chains of fma per thread

struct FmaProbeParams {
  int32_t rounds;  // of one fma per chain
  float factor;
  float addend;
};

}  // namespace metal
}  // namespace octavo
