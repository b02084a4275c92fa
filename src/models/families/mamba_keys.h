// mamba_keys.h - reads the config keys of Mamba-2 layers, whose names differ by family. No MLX.
#pragma once

#include "models/config.h"
#include "models/plans/mamba2_plan.h"

namespace octavo {

struct MambaKeys {
  const char* heads;
  const char* head_dim;
  const char* groups;
  const char* state_dim;
  const char* conv_kernel;
  const char* conv_bias;
  const char* bias;
};

// Fails on sizes that the kernels do not support and on limits of the time step.
Mamba2Plan plan_mamba2(const Config& config, const MambaKeys& keys);

}  // namespace octavo
