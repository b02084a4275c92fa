// SmolLM3. Every fourth layer has no rope, which the file does not state.
#include "models/gguf/architectures.h"

namespace octavo {

GgufArchitecture gguf_smollm3() {
  return {.name = "smollm3", .model_type = "smollm3", .permutes_rope = true};
}

}  // namespace octavo
