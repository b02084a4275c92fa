#include "models/gguf/hybrid_layers.h"

namespace octavo {

std::vector<bool> read_attention_layers(GgufReader& file, nlohmann::json& config) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  std::vector<bool> attends;
  for (const nlohmann::json& heads :
       file.take_per_layer(kKey, config["num_hidden_layers"].get<size_t>())) {
    attends.push_back(heads != 0);
    if (heads == 0) continue;
    if (config.contains("num_key_value_heads") && config["num_key_value_heads"] != heads)
      file.refuse(kKey, "differs between attention layers, which is not supported");
    config["num_key_value_heads"] = heads;
  }
  if (attends.empty()) file.refuse(kKey, "is missing");
  return attends;
}

double read_mamba_head_dim(GgufReader& file) {
  const double heads = file.take_number("ssm.time_step_rank");
  if (!(heads >= 1)) file.refuse("ssm.time_step_rank", "must be at least 1");
  return file.take_number("ssm.inner_size") / heads;
}

}  // namespace octavo
