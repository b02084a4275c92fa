// log.h - the process's one logger (spdlog), writing to stderr so that stdout stays the answer.
#pragma once

#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <vector>

namespace octavo {

// Sets format and level once, at the start of main. Level from OCTAVO_LOG (trace..error), else
// warn.
void init_logging();

enum class LogFormat : uint8_t {
  kText,  // 2026-01-31 12:00:00.000 info request method=GET path=/health
  kJson,  // {"time":"...","level":"info","message":"request","method":"GET"}, one object a line
};

// For a server: lines carry the time, and a reader of stderr that is slow holds up nobody: the
// oldest lines are dropped. Level from OCTAVO_LOG, else info.
void init_server_logging(LogFormat format);
// Writes what is still to be written.
void flush_logging();

using LogFields = std::vector<std::pair<std::string, std::string>>;

// A line with named values beside its message.
void log_event(spdlog::level::level_enum level, std::string_view message, const LogFields& fields);

}  // namespace octavo
