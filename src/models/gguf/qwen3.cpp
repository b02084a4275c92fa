// Qwen3, and the text part of Qwen3-VL. For text all sections of a multimodal rope have the same
// position, and no image features are added to the layers. As in transformers, pairs that no section
// includes (two of Qwen3-VL's 64) are rotated too; llama.cpp leaves them, which changes angles below
// 0.001 at position 1,000.
#include "models/gguf/architectures.h"

namespace octavo {

GgufArchitecture gguf_qwen3() {
  // find_classifier.cpp reads the labels of Qwen3-Reranker.
  return {.name = "qwen3", .model_type = "qwen3", .unused_keys = {"classifier.output_labels"}};
}

GgufArchitecture gguf_qwen3vl() {
  GgufArchitecture architecture = gguf_qwen3();
  architecture.name = "qwen3vl";
  architecture.unused_keys = {"classifier.output_labels", "rope.dimension_sections",
                              "n_deepstack_layers"};
  return architecture;
}

}  // namespace octavo
