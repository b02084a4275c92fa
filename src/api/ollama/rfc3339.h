// rfc3339.h - points in time as Ollama's API writes them.
#pragma once

#include <chrono>
#include <string>

namespace octavo::api {

// "2026-11-18T06:28:34.097767Z"
std::string rfc3339(std::chrono::system_clock::time_point time);
// Of a number of Unix seconds.
std::string rfc3339(int64_t unix_seconds);

}  // namespace octavo::api
