// Qwen2 and Qwen2.5.
#include "models/gguf/architectures.h"

namespace octavo {

GgufArchitecture gguf_qwen2() { return {.name = "qwen2", .model_type = "qwen2"}; }

}  // namespace octavo
