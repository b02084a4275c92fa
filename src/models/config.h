// config.h - a model's configuration, in Hugging Face's names whatever file it came from. No MLX.
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
  Config(nlohmann::json object, std::string origin);

  // The origin is what errors point the user to: "config.json" or the GGUF's file name.
  const std::string& origin() const { return origin_; }
  const nlohmann::json& json() const { return object_; }

  bool has(const std::string& key) const;  // present and not null
  int integer(const std::string& key, int low = 1, int high = 1 << 24) const;
  int integer_or(const std::string& key, int fallback, int low = 0, int high = 1 << 30) const;
  double number(const std::string& key) const;
  double number_or(const std::string& key, double fallback) const;
  bool boolean_or(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  // A number or a list of numbers; empty when absent.
  std::vector<int> integers(const std::string& key) const;
  // A list of texts; empty when absent.
  std::vector<std::string> texts(const std::string& key) const;
  // The object under `key`, or nothing.
  std::optional<Config> object(const std::string& key) const;

  // The same with `defaults` for keys it does not have; a null stays one.
  Config with_defaults(const nlohmann::json& defaults) const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  nlohmann::json object_;
  std::string origin_;
};

// Of any kind, from a file of at most 16 MiB. Throws SetupError.
nlohmann::json read_json(const std::filesystem::path& path);

// config.json beside the weights, or what a GGUF's metadata says in the same names. Of a model of
// several parts, what is said of its language model.
Config read_config(const Checkpoint& checkpoint);

// generation_config.json's stop tokens if there is one, else the config's. May be empty.
std::vector<int> stop_token_ids(const Checkpoint& checkpoint, const Config& config);

}  // namespace octavo
