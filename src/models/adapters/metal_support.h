// metal_support.h - modules of LoRA adapters that only the CPU's kernels serve. No MLX.
#pragma once

#include "models/adapters/adapter_targets.h"
#include "models/adapters/lora_weights.h"

namespace octavo {

// Throws SetupError that names the first module of the adapter that Metal cannot serve.
void check_metal_serves(const LoraWeights& weights, const AdapterTargets& targets);

}  // namespace octavo
