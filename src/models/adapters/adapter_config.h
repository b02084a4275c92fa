// adapter_config.h - reads adapter_config.json of PEFT and mlx-lm. No MLX.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/adapters/lora_use.h"
#include "models/config.h"

namespace octavo {

enum class AdapterFormat : uint8_t { kPeft, kMlx };

struct AdapterConfig {
  AdapterFormat format = AdapterFormat::kPeft;
  int rank = 0;
  bool dora = false;
  float scale = 0;  // mlx-lm's
  // PEFT's: scale = alpha / rank, or alpha / sqrt(rank) with rsLoRA.
  double alpha = 0;
  bool rslora = false;
  // By the end of a module's name; the first that matches counts.
  std::vector<std::pair<std::string, int>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
  // The modules that the file may have: ends of names for PEFT, names within a layer for mlx-lm.
  std::optional<std::vector<std::string>> target_modules = {};
  int num_layers = -1;  // mlx-lm: only the last so many layers; -1: all

  int rank_of(const std::string& module) const;
  float scale_of(const std::string& module) const;
  // Throws SetupError if the framework that wrote the adapter would ignore this module. `full_name`: as
  // the file has it; `module`: its local name (AdapterTargets).
  void check_module(const std::string& full_name, const std::string& module, int layers) const;
};

// `text`: the content of `file`. Throws SetupError that names the key if it asks for something that
// is not supported.
AdapterConfig read_adapter_config(const std::string& text, const std::filesystem::path& file,
                                  AdapterFormat format, LoraUse use = LoraUse::kServe);

}  // namespace octavo
