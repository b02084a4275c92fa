// MiniCPM3. Its scales are not in the file; these are those of MiniCPM3-4B, the only such model.
#include "models/gguf/architectures.h"
#include "models/gguf/latent_attention.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

void finish_minicpm3(GgufReader& file, nlohmann::json& config) {
  config["qk_nope_head_dim"] =
      file.take_number("attention.key_length") - gguf_number(config, "qk_rope_head_dim");
  if (const auto values = file.take_one("attention.value_length"); !values.is_null())
    config["v_head_dim"] = values;
  config["scale_emb"] = 12;
  config["scale_depth"] = 1.4;
  config["dim_model_base"] = 256;
}

}  // namespace

GgufArchitecture gguf_minicpm3() {
  GgufArchitecture architecture = gguf_latent_attention();
  architecture.name = "minicpm3";
  architecture.model_type = "minicpm3";
  architecture.config_tensors = {"rope_factors_long.weight", "rope_factors_short.weight"};
  architecture.adapt = finish_minicpm3;
  return architecture;
}

}  // namespace octavo
