// key_options.h - flags about API keys, of the test programs with a server.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/server_options.h"

namespace octavo {

inline void add_key_options(CLI::App& app, server::ServerOptions& server) {
  app.add_option_function<std::vector<std::string>>(
         "--api-key",
         [&server](const std::vector<std::string>& keys) {
           for (const std::string& key : keys) server.api_keys.push_back({.key = key});
         })
      ->allow_extra_args(false);
  app.add_option_function<std::string>("--api-key-file", [&server](const std::string& path) {
    server.reload_api_keys = [path] { return server::read_api_key_file(path); };
    server.api_keys = server.reload_api_keys();
  });
  app.add_option("--max-requests-per-key", server.max_requests_per_key);
  app.add_option_function<int64_t>(
      "--drain-delay",
      [&server](int64_t ms) { server.drain_delay = std::chrono::milliseconds(ms); },
      "Milliseconds of requests after SIGTERM");
}

}  // namespace octavo
