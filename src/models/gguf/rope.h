// rope.h - the rope of a GGUF file in Hugging Face's keys. No MLX.
#pragma once

#include "models/gguf/reader.h"

namespace octavo {

// Sets rope_theta, and rope_scaling if the file has one.
void read_gguf_rope(GgufReader& file, nlohmann::json& config);

// Sets layer_types from attention.sliding_window_pattern if it has an entry per layer, or
// sliding_window_pattern if it is a number.
void read_gguf_window_pattern(GgufReader& file, nlohmann::json& config);

}  // namespace octavo
