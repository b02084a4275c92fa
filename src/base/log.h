// log.h - the process's logger (spdlog). Writes to stderr; stdout is for results.
#pragma once

#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <vector>

namespace octavo {

// Sets the format and the level. Call once, at the start of main. OCTAVO_LOG (trace..error) sets
// the level; the default is warn.
void init_logging();

enum class LogFormat : uint8_t {
  kText,  // 2026-01-31 12:00:00.000 info request method=GET path=/health
  kJson,  // {"time":"...","level":"info","message":"request","method":"GET"}, one object per line
};

// For servers: adds the time to each line and logs asynchronously. If stderr is a pipe or socket
// that is not read for 10 s, lines are dropped and their number is logged later. Lines are valid
// UTF-8 without control characters. OCTAVO_LOG sets the level; the default is info.
void init_server_logging(LogFormat format);
// Writes all queued lines, for at most about a second if stderr is not read. Nothing can be logged
// afterwards.
void flush_logging();

using LogFields = std::vector<std::pair<std::string, std::string>>;

// Logs a message with named values.
void log_event(spdlog::level::level_enum level, std::string_view message, const LogFields& fields);

}  // namespace octavo
