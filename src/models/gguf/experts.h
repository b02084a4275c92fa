// experts.h - shared by the GGUF architectures whose experts are selected by sigmoid scores. No MLX.
#pragma once

#include "models/gguf/reader.h"

namespace octavo {

// Adds the metadata keys of DeepSeek's experts; the config has DeepSeek's names.
void add_deepseek_expert_keys(GgufArchitecture& architecture);

// The tensors of DeepSeek's experts in a module "mlp".
void add_deepseek_expert_names(GgufArchitecture& architecture);

// Throws unless expert_gating_func is sigmoid or absent.
void require_sigmoid_experts(GgufReader& file);

// Without the key, llama.cpp does not normalise the weights of the selected experts.
void read_expert_weights_norm(nlohmann::json& config);

}  // namespace octavo
