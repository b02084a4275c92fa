// serve_front.h - `octavo serve` without a model or with several: a front process and one process
// per loaded model.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/serve_flags.h"

namespace octavo {

// `command` has parsed the flags. Returns after a drain. Throws SetupError.
void serve_front(ServeFlags flags, const CLI::App& command);

}  // namespace octavo
