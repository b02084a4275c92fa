// llama_like.h - the reading of a config that Llama's relatives share. Family files start from it
// and change what is theirs. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// The one activation that a family knows, and where its configs name it.
struct KnownActivation {
  const char* key = "hidden_act";
  const char* name = "silu";
  Activation kind = Activation::kSilu;
};

// What stands around the layers, and layers of which only the MLP is planned.
DecoderPlan plan_frame(const Config& config, const char* family,
                       const KnownActivation& activation = {});

// Pre-norm decoder, grouped-query attention with rope in every layer, gated MLP, no biases.
DecoderPlan plan_llama_like(const Config& config, const char* family,
                            const KnownActivation& activation = {});

// How many dimensions of a head turn: partial_rotary_factor of them, or `part` without it.
int rotated_dims(const Config& config, int head_dim, double part = 1);

// Norms before and behind both halves of every layer, as Gemma names them.
void set_sandwich_norms(DecoderPlan& plan);

// By layer: whether layer_types calls it `type`; the others must be `other`. Empty without
// layer_types.
std::vector<bool> layers_of_type(const Config& config, size_t layers, const char* type,
                                 const char* other);

// The windows of a model of which some layers have one: those that layer_types calls
// "sliding_attention", or without it all but every `pattern`-th (sliding_window_pattern, if the
// config has it). 0: every layer.
std::vector<bool> sliding_layers(const Config& config, size_t layers, int pattern);

}  // namespace octavo
