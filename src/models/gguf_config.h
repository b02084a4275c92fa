// gguf_config.h - translates GGUF metadata and tensor names to Hugging Face's, so that a family is
// written once.
#pragma once

#include <string>
#include <string_view>

#include "models/config.h"

namespace octavo {

// Throws SetupError unless the file's architecture is one whose logits tests compare with an
// oracle. Any other may load and still give wrong tokens: its q and k rows may be in another order,
// and keys that change the result, such as scales, are not read.
void check_gguf_architecture(const Gguf& gguf);

// For any architecture: what is said of a file that is not supported comes from it, too.
Config config_from_gguf(const Checkpoint& checkpoint);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart
// is returned unchanged.
std::string gguf_tensor_name(std::string_view hugging_face_name);

// True if the file's q and k rows are in llama.cpp's interleaved rope order and must be reordered.
bool gguf_permutes_rope(const Checkpoint& checkpoint);

}  // namespace octavo
