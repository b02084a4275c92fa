// Qwen3.5 and Qwen3.6, dense and with experts. Value heads of the delta rule are tiled: head h uses
// key head h % key heads.
#include "models/gguf/architectures.h"
#include "models/gguf/qwen_hybrid.h"

namespace octavo {

GgufArchitecture gguf_qwen35() {
  GgufArchitecture architecture = gguf_qwen_hybrid();
  architecture.name = "qwen35";
  architecture.model_type = "qwen3_5_text";
  architecture.names.push_back({"linear_attn.in_proj_a.", "ssm_alpha."});
  architecture.names.push_back({"linear_attn.in_proj_b.", "ssm_beta."});
  architecture.tiles_value_heads = true;
  return architecture;
}

GgufArchitecture gguf_qwen35moe() {
  GgufArchitecture architecture = gguf_qwen35();
  architecture.name = "qwen35moe";
  architecture.model_type = "qwen3_5_moe_text";
  return architecture;
}

}  // namespace octavo
