// reader.h - reads the metadata of a GGUF file's architecture and remembers which keys were read.
// No MLX.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/format/checkpoint.h"
#include "models/gguf/architecture.h"

namespace octavo {

// Keys are given without "<architecture>.". Every error is a SetupError with the file and the key.
class GgufReader {
 public:
  GgufReader(const Checkpoint& checkpoint, const GgufArchitecture& architecture);

  const GgufArchitecture& architecture() const { return architecture_; }

  // The value, or null if the key is absent. An array becomes a JSON array.
  nlohmann::json take(std::string_view key);
  // The same for a value that must be equal in all layers; an array of equal values is one value.
  nlohmann::json take_one(std::string_view key);
  // One value per layer; a single value applies to all of them. Empty if the key is absent.
  std::vector<nlohmann::json> take_per_layer(std::string_view key, size_t layers);
  // A number that must be present.
  double take_number(std::string_view key);

  bool has_tensor(std::string_view name) const { return checkpoint_.find(name) != nullptr; }
  // True if any of the layers has this tensor: "attn_q.bias".
  bool any_layer_has(std::string_view name, size_t layers) const;
  // The rows of a matrix, or the length of a vector.
  int64_t rows_of(std::string_view tensor) const;
  // A vector of float32.
  std::vector<float> floats(std::string_view tensor) const;

  // Throws unless every key of the architecture was read or does not affect the output, and no key
  // belongs to another architecture.
  void refuse_unread(const std::vector<std::string_view>& other_architectures) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& problem) const;

 private:
  nlohmann::json array_of(const std::string& key, const GgufArray& array) const;
  [[noreturn]] void fail(std::string_view whole_key, const std::string& problem) const;

  const Checkpoint& checkpoint_;
  const Gguf& gguf_;
  const GgufArchitecture& architecture_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

// The number under `key` of a config, or `fallback`. A plan refuses values of other types.
double gguf_number(const nlohmann::json& config, const char* key, double fallback = 0);

}  // namespace octavo
