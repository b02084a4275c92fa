#include "models/gguf/rope.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr double kDefaultBase = 10000;

bool reads_tensor_of_rope(const GgufReader& file, std::string_view tensor) {
  const auto& tensors = file.architecture().config_tensors;
  return file.has_tensor(tensor) && std::ranges::find(tensors, tensor) != tensors.end();
}

// The key must be absent or have this value.
void expect_value(GgufReader& file, std::string_view key, double expected) {
  const Json value = file.take_one(key);
  if (!value.is_null() && value != Json(expected))
    file.refuse(key, fmt::format("is {}; only {} is supported", value.dump(), expected));
}

Json read_yarn(GgufReader& file, const Json& factor, const Json& original) {
  expect_value(file, "rope.scaling.yarn_ext_factor", 1);
  Json scaling = {
      {"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", original}};
  const auto read = [&](std::string_view key, const char* name) {
    if (const Json value = file.take_one(key); !value.is_null()) scaling[name] = value;
  };
  read("rope.scaling.yarn_beta_fast", "beta_fast");
  read("rope.scaling.yarn_beta_slow", "beta_slow");
  read("rope.scaling.yarn_attn_factor", "attention_factor");
  read("rope.scaling.yarn_log_multiplier", "mscale_all_dim");
  return scaling;
}

Json read_longrope(GgufReader& file, const Json& original) {
  const Json magnitude = file.take_one("rope.scaling.attn_factor");
  return {{"rope_type", "longrope"},
          {"long_factor", file.floats("rope_factors_long.weight")},
          {"attention_factor", magnitude.is_null() ? Json(1.0) : magnitude},
          {"original_max_position_embeddings", original}};
}

}  // namespace

void read_gguf_rope(GgufReader& file, Json& config) {
  const Json base = file.take_one("rope.freq_base");
  config["rope_theta"] = base.is_null() ? Json(kDefaultBase) : base;
  const Json type = file.take("rope.scaling.type");
  const Json factor = file.take_one("rope.scaling.factor");
  Json original = file.take_one("rope.scaling.original_context_length");
  if (original.is_null()) original = config.value("max_position_embeddings", Json());
  if (reads_tensor_of_rope(file, "rope_factors_long.weight")) {
    config["rope_scaling"] = read_longrope(file, original);
    return;
  }
  expect_value(file, "rope.scaling.attn_factor", 1);
  // llama.cpp's form of llama3 scaling: a divisor per frequency.
  const bool divided = reads_tensor_of_rope(file, "rope_freqs.weight");
  const bool scaled =
      type != Json("none") && !factor.is_null() && factor != Json(0.0) && factor != Json(1.0);
  if (divided && scaled)
    file.refuse("rope.scaling.factor", "and rope_freqs.weight together are not supported");
  if (divided) {
    config["rope_scaling"] = {{"rope_type", "factors"},
                              {"factors", file.floats("rope_freqs.weight")}};
  } else if (type == Json("yarn")) {
    config["rope_scaling"] = read_yarn(file, factor, original);
  } else if (scaled && (type.is_null() || type == Json("linear"))) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  } else if (!type.is_null() && type != Json("none") && type != Json("linear")) {
    file.refuse("rope.scaling.type", fmt::format("is {}, which is not supported", type.dump()));
  }
}

void read_gguf_window_pattern(GgufReader& file, Json& config) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const Json value = file.take(kKey);
  if (value.is_null()) return;
  if (!value.is_array()) {
    config["sliding_window_pattern"] = value;
    return;
  }
  const auto layers = config["num_hidden_layers"].get<size_t>();
  Json types = Json::array();
  for (const Json& each : file.take_per_layer(kKey, layers)) {
    const bool slides = each.is_boolean() ? each.get<bool>() : each != Json(0);
    types.push_back(slides ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = types;
}

}  // namespace octavo
