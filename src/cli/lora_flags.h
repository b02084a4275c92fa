// lora_flags.h - the flags of `octavo serve` for LoRA adapters.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/adapters.h"
#include "engine/engine_options.h"

namespace octavo {

struct LoraFlags {
  bool enable_lora = false;
  std::vector<std::string> lora_modules;
  int max_loras = 1;
  int max_lora_rank = 16;
  bool lora_experts = false;
  int max_cpu_loras = 0;                    // 0: as many as needed at start-up
  std::vector<api::AdapterSource> sources;  // lora_modules, after finish()

  void add_to(CLI::App& command);
  // Reads lora_modules. Returns whether the environment allows adapters to be loaded and unloaded
  // while the server runs. Throws SetupError that names the flag.
  bool finish();
  std::optional<AdapterOptions> options() const;  // unset without --enable-lora
  std::string describe() const;                   // for the start-up summary
};

}  // namespace octavo
