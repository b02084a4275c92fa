#include "models/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "models/config_file.h"
#include "models/gguf_config.h"

namespace octavo {
namespace {

constexpr size_t kMaxConfigBytes = 16u << 20;

Config read_json_file(const std::filesystem::path& path) {
  return {read_json(path), path.string()};
}

// Python writes numbers that JSON does not have; they become null.
std::string without_python_numbers(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    size_t length = 0;
    if (!quoted) {
      for (const std::string_view number : {"-Infinity", "Infinity", "NaN"})
        if (text.compare(i, number.size(), number) == 0) length = std::max(length, number.size());
    }
    if (length > 0) {
      out += "null";
      i += length;
      continue;
    }
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];  // the next character is part of the string, whatever it is
    } else if (text[i] == '"') {
      quoted = !quoted;
    }
    out += text[i++];
  }
  return out;
}

// A multimodal checkpoint describes its language model under text_config; top-level keys apply
// unless text_config overrides them. The top-level model_type is kept.
Config language_part(const Config& whole) {
  const auto text = whole.object("text_config");
  if (!text) return whole;
  nlohmann::json merged = whole.json();
  for (const char* part : {"text_config", "vision_config", "audio_config"}) merged.erase(part);
  for (const auto& [key, value] : text->json().items()) {
    if (key != "model_type" && !value.is_null()) merged[key] = value;
  }
  return {std::move(merged), whole.origin(), text->text_or("model_type", "")};
}

}  // namespace

// The paths of the keys that were read. Any thread.
class ReadKeys {
 public:
  void add(std::string path) {
    const std::scoped_lock lock(mutex_);
    paths_.insert(std::move(path));
  }
  bool contains(const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    return paths_.contains(path);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

nlohmann::json read_json(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, kMaxConfigBytes);
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded())
    json = nlohmann::json::parse(without_python_numbers(text), nullptr, false);
  if (json.is_discarded()) throw SetupError(path.string() + ": not valid JSON");
  return json;
}

Config::Config(nlohmann::json object, std::string origin, std::string text_type)
    : object_(std::move(object)),
      origin_(std::move(origin)),
      text_type_(std::move(text_type)),
      read_(std::make_shared<ReadKeys>()) {
  if (!object_.is_object()) throw SetupError(origin_ + ": not a JSON object");
}

void Config::fail(const std::string& key, const std::string& problem) const {
  throw SetupError(fmt::format("{}: \"{}\" {}", origin_, key, problem));
}

bool Config::has(const std::string& key) const {
  const auto value = object_.find(key);
  return value != object_.end() && !value->is_null();
}

void Config::note_read(const std::string& key) const { read_->add(path_ + key); }

const nlohmann::json* Config::find(const std::string& key) const {
  note_read(key);
  const auto value = object_.find(key);
  return value != object_.end() && !value->is_null() ? &*value : nullptr;
}

void Config::disregard(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) note_read(key);
}

bool Config::was_read(const std::string& path) const { return read_->contains(path); }

int Config::integer(const std::string& key, int low, int high) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_number()) fail(key, "is not a number");
  const auto number = value->get<double>();
  if (std::floor(number) != number || number < low || number > high) {
    fail(key, fmt::format("is {}, outside {} to {}", value->dump(), low, high));
  }
  return static_cast<int>(number);
}

int Config::integer_or(const std::string& key, int fallback, int low, int high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double Config::number(const std::string& key, double low, double high) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    fail(key, "is not a finite number");
  const auto number = value->get<double>();
  if (number < low || number > high)
    fail(key, fmt::format("is {}, outside {} to {}", number, low, high));
  return number;
}

double Config::number_or(const std::string& key, double fallback, double low, double high) const {
  return has(key) ? number(key, low, high) : fallback;
}

double Config::positive(const std::string& key) const {
  const double value = number(key);
  if (value < kSmallest) fail(key, fmt::format("is {}; it must be above 0", value));
  return value;
}

double Config::positive_or(const std::string& key, double fallback) const {
  return has(key) ? positive(key) : fallback;
}

bool Config::boolean_or(const std::string& key, bool fallback) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "is not true or false");
  return value->get<bool>();
}

std::string Config::text(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_string()) fail(key, "is not a string");
  return value->get<std::string>();
}

std::string Config::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::vector<int> Config::integers(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {integer(key, 0, 1 << 30)};
  std::vector<int> numbers;
  for (const auto& element : *value) {
    if (!element.is_number_integer() || element.get<double>() < 0 ||
        element.get<double>() > (1 << 30)) {
      fail(key, "is not a list of whole numbers");
    }
    numbers.push_back(element.get<int>());
  }
  return numbers;
}

std::vector<std::string> Config::texts(const std::string& key) const {
  std::vector<std::string> result;
  const nlohmann::json* value = find(key);
  if (value == nullptr) return result;
  if (!value->is_array()) fail(key, "is not a list");
  for (const auto& element : *value) {
    if (!element.is_string()) fail(key, "is not a list of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

Config Config::with_defaults(const nlohmann::json& defaults) const {
  Config merged = *this;
  merged.object_ = defaults;
  merged.object_.update(object_);
  return merged;
}

Config Config::with_values(const nlohmann::json& values) const {
  Config changed = *this;
  changed.object_.update(values);
  return changed;
}

std::optional<Config> Config::object(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail(key, "is not an object");
  Config inner(*value, fmt::format("{}: {}", origin_, key));
  inner.path_ = path_ + key + ".";
  inner.read_ = read_;
  return inner;
}

Config read_config(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return config_from_gguf(checkpoint);
  return read_config_file(checkpoint.folder() / "config.json");
}

Config read_config_file(const std::filesystem::path& config_json) {
  return language_part(read_json_file(config_json));
}

std::vector<int> stop_token_ids(const Checkpoint& checkpoint, const Config& config) {
  const auto path = checkpoint.folder() / "generation_config.json";
  if (checkpoint.gguf() == nullptr && std::filesystem::exists(path)) {
    const auto ids = read_json_file(path).integers("eos_token_id");
    if (!ids.empty()) return ids;
  }
  return config.integers("eos_token_id");
}

}  // namespace octavo
