// pooling_flags.h - whether a server embeds texts, and how, under vLLM's names.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "models/pooling_plan.h"

namespace octavo {

struct PoolingFlags {
  std::string runner = "auto";
  std::string pooler_config;
  std::string hf_overrides;

  void add_to(CLI::App& command);
  PoolingOptions options() const;
};

}  // namespace octavo
