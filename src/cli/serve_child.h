// serve_child.h - `octavo serve` as the process of a front: it reports on --status-fd.
#pragma once

#include <functional>

#include "cli/serve_flags.h"

namespace octavo {

// Runs `serve` with a StatusChannel in the flags, or with --plan-only reports the memory plan
// without loading the model. An exception is reported and thrown again.
void serve_child(ServeFlags flags, const std::function<void(ServeFlags)>& serve);

}  // namespace octavo
