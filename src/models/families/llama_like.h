// llama_like.h - reads the config keys shared by Llama-like families; family files modify the
// result. No MLX.
#pragma once

#include "models/decoder_plan.h"

namespace octavo {

// The activation a family supports, and the config key that names it.
struct KnownActivation {
  const char* key = "hidden_act";
  const char* name = "silu";
  Activation kind = Activation::kSilu;
};

// Plans everything but the mixers of the layers.
DecoderPlan plan_frame(const Config& config, const char* family,
                       const KnownActivation& activation = {});

// Pre-norm decoder, grouped-query attention with rope in every layer, gated MLP, no biases.
DecoderPlan plan_llama_like(const Config& config, const char* family,
                            const KnownActivation& activation = {});

// The number of rotated dimensions of a head: partial_rotary_factor of them, by default `part`.
int rotated_dims(const Config& config, int head_dim, double part = 1);

// Norms before and after both sublayers of every layer, with Gemma's names.
void set_sandwich_norms(DecoderPlan& plan);

// By layer: true if its layer_types entry is `type`; the others must be `other`. Empty without
// layer_types.
std::vector<bool> layers_of_type(const Config& config, size_t layers, const char* type,
                                 const char* other);

// Layers with a sliding window: those that layer_types calls "sliding_attention", or without it all
// but every `pattern`-th (overridden by sliding_window_pattern). 0: every layer.
std::vector<bool> sliding_layers(const Config& config, size_t layers, int pattern);

}  // namespace octavo
