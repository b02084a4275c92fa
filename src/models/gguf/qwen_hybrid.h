// qwen_hybrid.h - shared by the GGUF architectures of Qwen3.5 and Qwen3-Next. No MLX.
#pragma once

#include "models/gguf/architecture.h"

namespace octavo {

// Keys, names and norms of layers with a gated delta rule; the architectures add to it.
GgufArchitecture gguf_qwen_hybrid();

}  // namespace octavo
