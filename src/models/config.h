// config.h - a model's configuration with Hugging Face's names, regardless of the file format. No
// MLX.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/format/checkpoint.h"

namespace octavo {

// Typed, range-checked access to a JSON object. Every error is a SetupError that names the key.
class Config {
 public:
  static constexpr double kLargest = 1e36;
  static constexpr double kSmallest = 1e-36;  // of positive()

  Config(nlohmann::json object, std::string origin);

  // `origin` is named in errors: "config.json" or the name of the GGUF file.
  const std::string& origin() const { return origin_; }
  const nlohmann::json& json() const { return object_; }

  bool has(const std::string& key) const;  // present and not null
  int integer(const std::string& key, int low = 1, int high = 1 << 24) const;
  int integer_or(const std::string& key, int fallback, int low = 0, int high = 1 << 30) const;
  // Finite and within `low` to `high`; the default limits keep the value within float's range.
  double number(const std::string& key, double low = -kLargest, double high = kLargest) const;
  double number_or(const std::string& key, double fallback, double low = -kLargest,
                   double high = kLargest) const;
  // Above 0. The value, its inverse and its square root are normal floats, so a scale made of it is
  // neither 0 nor infinite.
  double positive(const std::string& key) const;
  double positive_or(const std::string& key, double fallback) const;
  bool boolean_or(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  // A number or a list of numbers; empty if absent.
  std::vector<int> integers(const std::string& key) const;
  // A list of strings; empty if absent.
  std::vector<std::string> texts(const std::string& key) const;
  // The object under `key`, if present.
  std::optional<Config> object(const std::string& key) const;

  // The same with `defaults` for absent keys; an explicit null is kept.
  Config with_defaults(const nlohmann::json& defaults) const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  nlohmann::json object_;
  std::string origin_;
};

// Reads any JSON value from a file of at most 16 MiB. Throws SetupError.
nlohmann::json read_json(const std::filesystem::path& path);

// Reads config.json next to the weights, or translates the metadata of a GGUF file. For a
// multimodal model, returns the configuration of its language model.
Config read_config(const Checkpoint& checkpoint);

// The stop tokens of generation_config.json if it exists, otherwise those of the config. May be
// empty.
std::vector<int> stop_token_ids(const Checkpoint& checkpoint, const Config& config);

}  // namespace octavo
