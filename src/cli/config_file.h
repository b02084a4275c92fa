// config_file.h - reads flags from a file: --config serve.toml.
#pragma once

#include <string>
#include <vector>

namespace octavo {

// Appends the flags in the file given by --config to `arguments`, main()'s arguments without the
// program name. Flags that are already in `arguments` take precedence. Throws SetupError if the
// file cannot be read.
std::vector<std::string> with_config_file(std::vector<std::string> arguments);

}  // namespace octavo
