// serve_flags.h - the flags of `octavo serve`. A config file uses the same names.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/lora_flags.h"
#include "cli/model_flags.h"
#include "generation/chat_dialect.h"
#include "server/server_options.h"

namespace octavo {

struct ServeFlags {
  ModelFlags model;
  server::ServerOptions server;
  std::vector<std::string> served_model_name;
  std::string generation_config = "auto";
  std::string api_key_file;
  std::string log_format = "text";
  std::string config;
  double sse_keepalive = 20;
  double drain_timeout = 30;
  PoolingFlags pooling;
  ChatDialectOptions dialect;
  LoraFlags lora;
  std::string thinking = "auto";

  void add_to(CLI::App& command);
  // Reads the API keys and derives the remaining options. Throws SetupError, for example if other
  // machines could connect without a key.
  void finish();

 private:
  void add_access_flags(CLI::App& command);
  void add_limit_flags(CLI::App& command);
  void add_dialect_flags(CLI::App& command);
};

}  // namespace octavo
