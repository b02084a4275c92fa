// api_key_flags.h - the flags of `octavo serve` about API keys.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/api_key_file.h"

namespace octavo {

struct ApiKeyFlags {
  std::vector<std::string> keys;
  std::string file;

  void add_to(CLI::App& command, const std::string& group);
  // The keys of the file, --api-key and OCTAVO_API_KEY, each once. Throws SetupError.
  std::vector<server::ApiKey> read() const;
};

}  // namespace octavo
