// serve_front_flags.h - the flags of `octavo serve` without a model or with several.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octavo {

struct FrontFlags {
  std::string models_dir;
  std::string preset;
  std::string keep_alive = "5m";
  std::vector<std::string> preload;
  int models_max = 0;
  bool allow_pull = false;
  double kv_share = 0.2;
  double load_timeout = 300;

  void add_to(CLI::App& command);
  // Whether one of them was given.
  static bool any_given(const CLI::App& command);
};

// The flags that were given on the command line or in --config and apply to every model:
// "--max-num-seqs=8".
std::vector<std::string> flags_for_models(const CLI::App& command);

}  // namespace octavo
