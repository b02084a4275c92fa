// pooling_flags.h - whether a server embeds texts, and how, under vLLM's names.
#pragma once

#include <CLI/CLI.hpp>

#include "llm/model_settings.h"

namespace octavo {

struct PoolingFlags : PoolingSettings {
  void add_to(CLI::App& command);
};

}  // namespace octavo
