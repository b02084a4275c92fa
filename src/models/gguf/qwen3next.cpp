// Qwen3-Next. in_proj_qkvz is stored as qkv and z, in old files as one tensor with the rows of the
// original; in_proj_ba is unchanged.
#include "models/gguf/architectures.h"
#include "models/gguf/qwen_hybrid.h"

namespace octavo {

GgufArchitecture gguf_qwen3next() {
  GgufArchitecture architecture = gguf_qwen_hybrid();
  architecture.name = "qwen3next";
  architecture.model_type = "qwen3_next";
  architecture.names.push_back({"linear_attn.in_proj_qkvz.", "ssm_in."});
  architecture.names.push_back({"linear_attn.in_proj_ba.", "ssm_ba."});
  return architecture;
}

}  // namespace octavo
