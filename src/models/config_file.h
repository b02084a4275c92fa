// config_file.h - the configuration of a model whose weights are not downloaded yet. No MLX.
#pragma once

#include <filesystem>

#include "models/config.h"

namespace octavo {

// What read_config would return for a model with this config.json.
Config read_config_file(const std::filesystem::path& config_json);

}  // namespace octavo
