// gguf_config.h - translates GGUF metadata and tensor names to Hugging Face's, so that a family is
// written once.
#pragma once

#include <string>
#include <string_view>

#include "models/config.h"

namespace octavo {

Config config_from_gguf(const Checkpoint& checkpoint);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart
// is returned unchanged.
std::string gguf_tensor_name(std::string_view hugging_face_name);

// True if the file's q and k rows are in llama.cpp's interleaved rope order and must be reordered.
bool gguf_permutes_rope(const Checkpoint& checkpoint);

}  // namespace octavo
