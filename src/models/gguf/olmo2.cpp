// OLMo 2 and 3; OLMo 3 has a sliding window.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"
#include "models/gguf/rope.h"

namespace octavo {
namespace {

void tell_olmo3(GgufReader& file, nlohmann::json& config) {
  read_gguf_window_pattern(file, config);
  if (config.value("sliding_window", nlohmann::json(0)) != 0) config["model_type"] = "olmo3";
}

}  // namespace

GgufArchitecture gguf_olmo2() {
  return {.name = "olmo2",
          .model_type = "olmo2",
          .keys = {{"attention.sliding_window", "sliding_window"}},
          .names = {{"post_attention_layernorm.", "post_attention_norm."},
                    {"post_feedforward_layernorm.", "post_ffw_norm."}},
          .adapt = tell_olmo3};
}

}  // namespace octavo
