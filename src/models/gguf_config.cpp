#include "models/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"
#include "models/gguf/rope.h"
#include "models/gguf_stop_tokens.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr auto kSharedKeys = std::to_array<GgufKey>({
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
});

bool reads_itself(const GgufArchitecture& architecture, std::string_view key) {
  const auto& own = architecture.own_keys;
  return std::ranges::find(own, key) != own.end();
}

void read_keys(GgufReader& file, std::span<const GgufKey> keys, Json& config) {
  for (const auto& [key, name] : keys) {
    if (reads_itself(file.architecture(), key)) continue;
    if (Json value = file.take_one(key); !value.is_null())
      config[std::string(name)] = std::move(value);
  }
}

// Without those for multi-token prediction, which are the last ones.
size_t read_layers(GgufReader& file) {
  constexpr double kMostLayers = 4096;
  double layers = file.take_number("block_count");
  if (file.architecture().has_mtp) {
    const Json extra = file.take("nextn_predict_layers");
    if (extra.is_number()) layers -= extra.get<double>();
  }
  if (!(layers >= 1 && layers <= kMostLayers) || std::floor(layers) != layers)
    file.refuse("block_count",
                fmt::format("gives {} layers; 1 to {} are supported", layers, kMostLayers));
  return static_cast<size_t>(layers);
}

// Sets head_dim, and partial_rotary_factor if only a part of a head is rotated.
void read_heads(GgufReader& file, Json& config) {
  const GgufArchitecture& architecture = file.architecture();
  if (reads_itself(architecture, "attention.key_length")) return;
  const double heads = gguf_number(config, "num_attention_heads");
  if (!config.contains("head_dim") && heads > 0)
    config["head_dim"] = std::floor(gguf_number(config, "hidden_size") / heads);
  const Json values = file.take_one("attention.value_length");
  if (!values.is_null() && values != config["head_dim"])
    file.refuse("attention.value_length", "differs from attention.key_length; not supported");
  const double head = gguf_number(config, "head_dim");
  const Json rotated = file.take_one("rope.dimension_count");
  const double dims = rotated.is_number() ? rotated.get<double>() : head;
  if (dims != head && !architecture.partial_rope)
    file.refuse("rope.dimension_count",
                fmt::format("is {}; heads of {} must be rotated as a whole", dims, head));
  // The half makes the product with the head's size round down to `dims`.
  if (architecture.partial_rope && head > 0)
    config["partial_rotary_factor"] = dims == head ? 1 : (dims + 0.5) / head;
}

void read_tensors(const GgufReader& file, size_t layers, Json& config) {
  config["vocab_size"] = file.rows_of("token_embd.weight");
  config["tie_word_embeddings"] = !file.has_tensor("output.weight");
  config["attention_bias"] = file.any_layer_has("attn_q.bias", layers);
  config["mlp_bias"] = file.any_layer_has("ffn_gate.bias", layers);
}

}  // namespace

Config config_from_gguf(const Checkpoint& checkpoint) {
  const Gguf& gguf = *checkpoint.gguf();
  const GgufArchitecture& architecture = gguf_architecture(gguf);
  GgufReader file(checkpoint, architecture);
  Json config = {{"model_type", std::string(architecture.model_type)}};
  const size_t layers = read_layers(file);
  config["num_hidden_layers"] = layers;
  read_keys(file, kSharedKeys, config);
  read_keys(file, architecture.keys, config);
  if (!architecture.is_encoder && file.take("attention.causal") == Json(false))
    file.refuse("attention.causal", "is false; only causal attention is supported");
  read_heads(file, config);
  read_gguf_rope(file, config);
  read_tensors(file, layers, config);
  if (architecture.adapt != nullptr) architecture.adapt(file, config);
  file.refuse_unread(gguf_architecture_names());
  config["eos_token_id"] = gguf_stop_tokens(gguf);
  return {std::move(config), gguf.file_name()};
}

}  // namespace octavo
