#include "front/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "front/toml_reader.h"

namespace octavo::front {
namespace {

constexpr std::string_view kAllModels = "*";
constexpr size_t kMostPresetBytes = 1 << 20;

// Set once for the whole server.
constexpr std::array kServerFlags = {"host",
                                     "port",
                                     "uds",
                                     "api-key",
                                     "api-key-file",
                                     "allowed-hosts",
                                     "config",
                                     "served-model-name",
                                     "allowed-origins",
                                     "memory-fraction",
                                     "memory-limit",
                                     "models-max",
                                     "models-dir",
                                     "preset",
                                     "allow-pull",
                                     "load-timeout",
                                     "drain-timeout",
                                     "log-format",
                                     "status-fd",
                                     "max-connections"};

// Reads the entries of one section.
class PresetSection {
 public:
  PresetSection(const std::string& where, ModelPreset& model) : where_(where), model_(model) {}

  void read(const TomlEntry& entry) {
    if (std::ranges::count(kServerFlags, entry.key) > 0)
      fail(entry, "is set for the whole server; give it as a flag of octavo serve");
    const bool special = read_own_key(entry);
    if (special) return;
    for (const std::string& value : entry.values)
      model_.flags.push_back(fmt::format("--{}={}", entry.key, value));
  }

 private:
  [[noreturn]] void fail(const TomlEntry& entry, const std::string& problem) const {
    throw SetupError(fmt::format("{}, line {}: {} {}", where_, entry.line, entry.key, problem));
  }

  const std::string& single(const TomlEntry& entry) const {
    if (entry.is_list) fail(entry, "must be one value, not a list");
    return entry.values.front();
  }

  bool truth(const TomlEntry& entry) const {
    const std::string& text = single(entry);
    if (text != "true" && text != "false") fail(entry, "must be true or false");
    return text == "true";
  }

  double share(const TomlEntry& entry) const {
    const std::string& text = single(entry);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0 && value <= 1))
      fail(entry, "must be above 0 and at most 1, for example 0.2");
    return value;
  }

  KeepAlive keep_alive(const TomlEntry& entry) const {
    const auto parsed = parse_keep_alive(single(entry));
    if (!parsed) fail(entry, "must be a duration such as \"5m\", a number of seconds, or -1");
    return *parsed;
  }

  // Keys that are not flags of a model's process. Returns false for all others.
  bool read_own_key(const TomlEntry& entry) {
    if (model_.name != kAllModels) {
      if (entry.key == "model") return model_.model = single(entry), true;
      if (entry.key == "aliases") return model_.aliases = entry.values, true;
      if (entry.key == "preload") return model_.preload = truth(entry), true;
      if (entry.key == "pinned") return model_.pinned = truth(entry), true;
    }
    if (entry.key == "keep-alive") return model_.keep_alive = keep_alive(entry), true;
    if (entry.key == "kv-share") return model_.kv_share = share(entry), true;
    return false;
  }

  const std::string& where_;
  ModelPreset& model_;
};

std::string name_of_flag(const std::string& flag) { return flag.substr(0, flag.find('=')); }

// The flags of all models come first, without those that the model sets itself.
void add_defaults(const ModelPreset& all, ModelPreset& model) {
  std::vector<std::string> flags = all.flags;
  std::erase_if(flags, [&](const std::string& flag) {
    return std::ranges::any_of(model.flags, [&](const std::string& own) {
      return name_of_flag(own) == name_of_flag(flag);
    });
  });
  flags.insert(flags.end(), model.flags.begin(), model.flags.end());
  model.flags = std::move(flags);
  if (!model.keep_alive) model.keep_alive = all.keep_alive;
  if (!model.kv_share) model.kv_share = all.kv_share;
}

}  // namespace

Preset parse_preset(std::string_view text, const std::string& path) {
  const std::string where = "--preset " + path;
  ModelPreset all{.name = std::string(kAllModels)};
  std::vector<ModelPreset> models;
  for (const TomlEntry& entry : read_toml(text, where)) {
    if (entry.table.empty()) {
      throw SetupError(
          fmt::format("{}, line {}: {} is before the first section; start with [NAME], or with "
                      "[\"*\"] for the flags of all models",
                      where, entry.line, entry.key));
    }
    if (entry.key.empty()) {
      if (entry.table != kAllModels) models.push_back({.name = entry.table});
      continue;
    }
    PresetSection(where, entry.table == kAllModels ? all : models.back()).read(entry);
  }
  for (ModelPreset& model : models) add_defaults(all, model);
  return {.flags = std::move(all.flags),
          .keep_alive = all.keep_alive,
          .kv_share = all.kv_share,
          .models = std::move(models)};
}

Preset read_preset(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SetupError("--preset: cannot read " + path.string());
  std::string text(kMostPresetBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostPresetBytes)
    throw SetupError(fmt::format("--preset {}: is larger than 1 MiB", path.string()));
  return parse_preset(text, path.string());
}

}  // namespace octavo::front
