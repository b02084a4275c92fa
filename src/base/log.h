// log.h - the process's one logger (spdlog), writing to stderr so that stdout stays the answer.
#pragma once

#include <spdlog/spdlog.h>

namespace octavo {

// Sets format and level once, at the start of main. Level from OCTAVO_LOG (trace..error), else
// warn.
void init_logging();

}  // namespace octavo
