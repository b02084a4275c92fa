// foreign_environment.h - reports variables of vllm-metal, which octavo does not read. No MLX.
#pragma once

#include <optional>
#include <string>

namespace octavo {

// `environment` is the process's, "NAME=value" each, with a null pointer at the end. Returns one
// line that names every such variable and octavo's flag for it; nullopt if none is set.
std::optional<std::string> foreign_environment_note(const char* const* environment);

}  // namespace octavo
