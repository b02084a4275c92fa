// preset.h - reads --preset FILE.toml: flags, aliases and memory rules per model. No MLX.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "front/keep_alive.h"

namespace octavo::front {

struct ModelPreset {
  std::string name = {};                  // of the section
  std::string model = {};                 // path or name of what is loaded; empty: `name`
  std::vector<std::string> aliases = {};  // further names in requests
  std::vector<std::string> flags = {};    // of octavo serve: "--max-model-len=8192"
  bool preload = false;                   // at start-up
  bool pinned = false;                    // never unloaded for another model, or for being idle
  std::optional<KeepAlive> keep_alive = {};
  std::optional<double> kv_share = {};
};

struct Preset {
  // Of the section ["*"], for models without a section; those with one have them already.
  std::vector<std::string> flags = {};
  std::optional<KeepAlive> keep_alive = {};
  std::optional<double> kv_share = {};
  std::vector<ModelPreset> models = {};
};

// Throws SetupError with the line and what to write instead. Names of flags are not checked here,
// except for those that belong to the whole server.
Preset parse_preset(std::string_view text, const std::string& path);
Preset read_preset(const std::filesystem::path& path);

}  // namespace octavo::front
