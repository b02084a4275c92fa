// architecture.h - how the GGUF files of one architecture differ from Hugging Face checkpoints of
// the same models, as data. No MLX.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace octavo {

class GgufReader;

// A metadata key after "<architecture>.", and the config key of the same meaning.
struct GgufKey {
  std::string_view key;
  std::string_view config;
};

// How the values of a tensor are stored.
enum class GgufValues : uint8_t {
  kSame,
  kMinusExp,  // -exp(x) instead of x
};

// The beginning of a tensor name after its layer's prefix, Hugging Face's first. The rest of the
// name is the same.
struct GgufName {
  std::string_view ours;
  std::string_view theirs;
  GgufValues values = GgufValues::kSame;
};

// Keys and names that most architectures share are in gguf_config.cpp and architectures.cpp.
struct GgufArchitecture {
  std::string_view name = {};        // general.architecture
  std::string_view model_type = {};  // of the config; `adapt` may change it
  std::vector<GgufKey> keys = {};
  // Shared keys that have another meaning here and are read by `adapt`.
  std::vector<std::string_view> own_keys = {};
  // Keys that do not affect this model's text output.
  std::vector<std::string_view> unused_keys = {};
  std::vector<GgufName> names = {};
  // Tensors that become part of the config, such as the factors of a rope.
  std::vector<std::string_view> config_tensors = {};
  bool permutes_rope = false;         // q and k rows of a head are stored as adjacent pairs
  bool partial_rope = false;          // rope.dimension_count may be less than the head
  bool includes_norm_offset = false;  // norm weights are stored as 1 + w
  bool tiles_value_heads = false;     // value head h of a delta rule uses key head h % key heads
  bool has_mtp = false;               // the last layers may be for multi-token prediction
  bool is_encoder = false;            // attention.causal is false, and `adapt` reads it
  // Reads what the tables cannot express; runs last.
  void (*adapt)(GgufReader& file, nlohmann::json& config) = nullptr;
};

}  // namespace octavo
