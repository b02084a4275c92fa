// config_file.h - flags from a file, under their own names: --config serve.toml.
#pragma once

#include <string>
#include <vector>

namespace octavo {

// `arguments` as main() got them, without the program's name. Those of a file named by --config are
// put behind them, but for flags that are given already. Throws SetupError when the file cannot be
// read.
std::vector<std::string> with_config_file(std::vector<std::string> arguments);

}  // namespace octavo
