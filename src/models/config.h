// config.h - a model's configuration with Hugging Face's names, regardless of the file format. No
// MLX.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/format/checkpoint.h"

namespace octavo {

class ReadKeys;

// Typed, range-checked access to a JSON object. Every error is a SetupError that names the key. Each
// function that returns a value records that its key was read, for config_keys.h; copies and the
// objects inside share the record.
class Config {
 public:
  static constexpr double kLargest = 1e36;
  static constexpr double kSmallest = 1e-36;  // of positive()

  // `text_type` is the model_type of the text_config that was joined to the object, if any.
  Config(nlohmann::json object, std::string origin, std::string text_type = "");

  // `origin` is named in errors: "config.json" or the name of the GGUF file.
  const std::string& origin() const { return origin_; }
  const std::string& text_type() const { return text_type_; }
  const nlohmann::json& json() const { return object_; }

  // Present and not null. Does not count as reading the key.
  bool has(const std::string& key) const;
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
  // The value under `key`, or nullptr if it is absent or null.
  const nlohmann::json* find(const std::string& key) const;

  // Counts the keys as read: the value of another key makes them irrelevant.
  void disregard(std::initializer_list<const char*> keys) const;
  // `path` is a key, or keys joined by dots: "rope_scaling.factor".
  bool was_read(const std::string& path) const;

  // The same with `defaults` for absent keys; an explicit null is kept.
  Config with_defaults(const nlohmann::json& defaults) const;
  // The same with `values` in place of its own.
  Config with_values(const nlohmann::json& values) const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  void note_read(const std::string& key) const;

  nlohmann::json object_;
  std::string origin_;
  std::string text_type_;
  std::string path_;  // of this object in the file, ending in a dot; empty for the whole
  std::shared_ptr<ReadKeys> read_;
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
