// hybrid_layers.h - shared by the GGUF architectures with attention in some layers only. No MLX.
#pragma once

#include <vector>

#include "models/gguf/reader.h"

namespace octavo {

// By layer: true for attention, where attention.head_count_kv is above 0. Sets num_key_value_heads.
std::vector<bool> read_attention_layers(GgufReader& file, nlohmann::json& config);

// The size of a head of Mamba-2: the heads, ssm.time_step_rank, divide ssm.inner_size.
double read_mamba_head_dim(GgufReader& file);

}  // namespace octavo
