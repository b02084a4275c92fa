// llama_like.h - the reading of a config that Llama's relatives share. Family files start from it
// and change what is theirs. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// What stands around the layers, and layers of which only the MLP is planned.
DecoderPlan plan_frame(const Config& config, const char* family);

// Pre-norm decoder, grouped-query attention with rope in every layer, gated SiLU MLP, no biases.
DecoderPlan plan_llama_like(const Config& config, const char* family);

}  // namespace octavo
