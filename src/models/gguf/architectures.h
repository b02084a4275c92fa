// architectures.h - the supported GGUF architectures and the names of their tensors. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/format/gguf_metadata.h"
#include "models/gguf/architecture.h"

namespace octavo {

// The entry of a value of general.architecture. Throws SetupError that lists the supported ones if
// there is none: an unknown architecture may have other names, another order of rows, or keys that
// change the output. `origin`: the file or the repository, for the error.
const GgufArchitecture& find_gguf_architecture(std::string_view name, std::string_view origin);
const GgufArchitecture& gguf_architecture(const Gguf& gguf);

std::vector<std::string_view> gguf_architecture_names();

struct GgufTensor {
  std::string name;
  GgufValues values = GgufValues::kSame;
};

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart
// keeps its part after the layer.
GgufTensor gguf_tensor(const GgufArchitecture& architecture, std::string_view hugging_face_name);

// True if a model of `layers` layers does not load this tensor of the file: it is part of the
// config or of a layer for multi-token prediction.
bool gguf_skips(const GgufArchitecture& architecture, std::string_view name, size_t layers);

// One per file of this folder.
GgufArchitecture gguf_bert();
GgufArchitecture gguf_deepseek2();
GgufArchitecture gguf_gemma2();
GgufArchitecture gguf_gemma3();
GgufArchitecture gguf_gemma4();
GgufArchitecture gguf_glm4();
GgufArchitecture gguf_glm4moe();
GgufArchitecture gguf_gpt_oss();
GgufArchitecture gguf_granite();
GgufArchitecture gguf_granitehybrid();
GgufArchitecture gguf_lfm2();
GgufArchitecture gguf_lfm2moe();
GgufArchitecture gguf_llama();
GgufArchitecture gguf_minicpm3();
GgufArchitecture gguf_mistral3();
GgufArchitecture gguf_nemotron_h();
GgufArchitecture gguf_nemotron_h_moe();
GgufArchitecture gguf_nomic_bert();
GgufArchitecture gguf_olmo2();
GgufArchitecture gguf_phi3();
GgufArchitecture gguf_qwen2();
GgufArchitecture gguf_qwen3();
GgufArchitecture gguf_qwen35();
GgufArchitecture gguf_qwen35moe();
GgufArchitecture gguf_qwen3moe();
GgufArchitecture gguf_qwen3next();
GgufArchitecture gguf_qwen3vl();
GgufArchitecture gguf_qwen3vlmoe();
GgufArchitecture gguf_smollm3();

}  // namespace octavo
