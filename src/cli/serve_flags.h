// serve_flags.h - the flags of `octavo serve`. A config file uses the same names.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "api/images/media_fetcher.h"
#include "cli/api_key_flags.h"
#include "cli/lora_flags.h"
#include "cli/model_flags.h"
#include "cli/serve_front_flags.h"
#include "generation/chat_dialect.h"
#include "kv_events/config.h"
#include "server/server_options.h"

namespace octavo {

class StatusChannel;

struct ServeFlags {
  std::vector<std::string> models;  // MODEL; exactly one, unless it is a front
  ModelFlags model;
  FrontFlags front;
  server::ServerOptions server;
  std::vector<std::string> served_model_name;
  std::string generation_config = "auto";
  ApiKeyFlags api_keys;
  std::string log_format = "text";
  std::string config;
  std::vector<std::string> allowed_media_domains;
  std::shared_ptr<const api::MediaFetcher> media_fetcher;  // from them; null: none
  std::string kv_events_config;
  std::string otlp_traces_endpoint;
  std::vector<std::string> prefix_peers;
  std::string prefix_peer_secret_file;
  kv_events::Config kv_events;  // after finish()
  std::string state_max_bytes = "4GiB";
  double sse_keepalive = 20;
  double drain_timeout = 30;
  double drain_delay = 0;
  PoolingFlags pooling;
  ChatDialectOptions dialect;
  LoraFlags lora;
  std::string thinking = "auto";
  bool end_with_stdin = false;  // hidden: drain when stdin ends
  // Of the process of a front; hidden.
  int status_fd = -1;
  bool plan_only = false;
  std::shared_ptr<StatusChannel> status;  // empty: not such a process

  void add_to(CLI::App& command);
  // Reads the API keys and derives the remaining options. Throws SetupError, for example if other
  // machines could connect without a key.
  void finish();
  // After model.find().
  EngineOptions engine_options() const;

 private:
  void add_access_flags(CLI::App& command);
  void add_limit_flags(CLI::App& command);
  void add_state_flags(CLI::App& command);
  void add_dialect_flags(CLI::App& command);
  void add_fleet_flags(CLI::App& command);
  void read_kv_events();
  void read_api_keys();
  void prepare_reload();  // of the keys; after both
  void read_prefix_peers();
};

}  // namespace octavo
