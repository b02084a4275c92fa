// running_server.h - what a running server reports about its models: /api/ps and /metrics. No MLX.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// How to reach the server: flags of the commands in this folder.
struct ServerAccess {
  std::string url = "http://127.0.0.1:8000";
  std::string api_key = {};

  void add_to(CLI::App& command);
};

struct RunningModel {
  std::string name = {};
  uint64_t bytes = 0;
  int context = 0;                                                       // tokens; 0: not reported
  std::optional<std::chrono::system_clock::time_point> expires_at = {};  // nothing: never
  double running = 0;                                                    // requests
  double waiting = 0;
  double generated = 0;  // tokens since the model was loaded
  double kv_use = 0;     // 0 to 1
};

struct ServerReading {
  std::vector<RunningModel> models;
  std::chrono::steady_clock::time_point at;
};

// Throws SetupError if the server cannot be reached or refuses.
ServerReading read_server(const ServerAccess& access);

// From the bodies of /api/ps and /metrics. Throws SetupError if the first is not what it should be.
std::vector<RunningModel> running_models(std::string_view ps, std::string_view metrics);

// The models of `now` as a table. Tokens per second are those between the two readings.
std::string table_of(const ServerReading& before, const ServerReading& now,
                     std::chrono::system_clock::time_point clock);

// "2026-11-18T06:40:00.5Z" or with an offset such as "+01:00". Nothing if it is malformed.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(const std::string& text);

}  // namespace octavo
