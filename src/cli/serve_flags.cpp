#include "cli/serve_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/images/url_fetcher.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/model_by_name.h"
#include "cli/option_group.h"
#include "cli/parse/number_check.h"
#include "server/server.h"

namespace octavo {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// Routers predict hits from the blocks' hashes, which say nothing about the API key.
void require_one_namespace(const std::vector<server::ApiKey>& keys) {
  if (keys.size() < 2) return;
  throw SetupError(fmt::format(
      "--kv-events-config: each of the {} API keys has a prefix cache of its own, which "
      "routers do not know; add --share-prefix-cache, or use one key",
      keys.size()));
}

// vLLM's form of a list: '["https://a", "https://b"]'.
void expand_json_lists(std::vector<std::string>& values, const char* flag) {
  std::vector<std::string> expanded;
  for (const std::string& value : values) {
    if (!value.starts_with('[')) {
      expanded.push_back(value);
      continue;
    }
    const auto list = nlohmann::json::parse(value, nullptr, false);
    bool valid = list.is_array();
    if (valid)
      for (const auto& each : list) valid = valid && each.is_string();
    if (!valid)
      throw SetupError(
          fmt::format(R"({}: {} is not a JSON list of texts; write '["https://a"]')", flag, value));
    for (const auto& each : list) expanded.push_back(each.get<std::string>());
  }
  values = std::move(expanded);
}

}  // namespace

void ServeFlags::add_access_flags(CLI::App& command) {
  const std::string group = "Address and access";
  command
      .add_option(
          "--host", server.host,
          "Address to listen on; an address that other machines can reach requires an API key")
      ->capture_default_str()
      ->group(group);
  command.add_option("--port", server.port, "Port to listen on; 0 picks a free port")
      ->transform(port_number())
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--uds", server.uds,
          "Path of a Unix socket to listen on, instead of --host and --port; only this user "
          "can connect")
      ->type_name("PATH")
      ->group(group);
  command
      .add_option(
          "--internal-port", server.internal_port,
          "Second port for routers and monitoring, with health, metrics, the description of KV "
          "events and render routes that need no API key; 0 picks a free port")
      ->transform(port_number())
      ->type_name("INT")
      ->group(group);
  command
      .add_option("--internal-host", server.internal_host,
                  "Address of --internal-port; clients that can reach it need no API key")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--behind-front", server.behind_front)->group("");  // hidden: set by the front
  api_keys.add_to(command, group);
  command
      .add_flag("--share-prefix-cache", server.share_prefix_cache,
                "Share cached prefixes between API keys; by default each of several keys has its "
                "own")
      ->group(group);
  command
      .add_option("--allowed-hosts", server.allowed_hosts,
                  "Host names that a server without API keys accepts in the header Host, besides "
                  "IP addresses, localhost and --host: comma-separated, may be repeated; * allows "
                  "all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--allowed-origins", server.cors.allowed_origins,
                  "Origins of web pages that may call the API (CORS), for example "
                  "https://example.org; * allows all (default: only the built-in page). May be "
                  "repeated, or a JSON list as in vLLM")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option(
          "--served-model-name", served_model_name,
          "Names of the model in requests and responses: one or more, may be repeated; responses "
          "have the first (default: the name of the file or folder)")
      ->allow_extra_args(false)
      ->group(group);
}

void ServeFlags::add_limit_flags(CLI::App& command) {
  const std::string group = "Limits and logs";
  const auto option = [&](const char* name, auto& value, const char* about) {
    return command.add_option(name, value, about)->capture_default_str()->group(group);
  };
  option("--max-open-requests", server.max_open_requests,
         "Maximum number of open requests, including waiting ones; further requests get 429 with "
         "Retry-After")
      ->transform(whole_number(1));
  option("--max-open-sequences", server.max_open_sequences,
         "Maximum number of open sequences (prompts x n) besides the first of each request; a "
         "request that does not fit now gets 429, one that exceeds the limit alone gets 400")
      ->transform(whole_number(1));
  option(
      "--max-requests-per-key", server.max_requests_per_key,
      "Maximum number of open requests of one API key; further ones get 429 with Retry-After. 0: "
      "no limit")
      ->transform(whole_number(0));
  option("--max-connections", server.max_connections,
         "Maximum number of open connections; further connections get 503")
      ->transform(whole_number(1));
  option(
      "--max-stored-responses", server.stored_responses.count,
      "Number of responses kept for previous_response_id, up to 64 MiB in total (less with little "
      "memory); the least recently used are dropped first. 0 keeps none");
  option("--sse-keepalive", sse_keepalive,
         "Seconds without output after which a stream sends a comment line; 0 disables them")
      ->transform(real_number(0, true));
  option("--drain-timeout", drain_timeout,
         "Seconds that open requests may still take after SIGTERM before they are aborted")
      ->transform(real_number(0, true));
  option("--drain-delay", drain_delay,
         "Seconds after SIGTERM in which requests are still accepted while /readyz and /health "
         "return 503, so that routers notice first; --drain-timeout begins afterwards")
      ->transform(real_number(0, true));
  option("--log-format", log_format, "text, or json with one object per line")
      ->check(CLI::IsMember({"text", "json"}));
  command
      .add_flag("--access-log,!--no-access-log", server.access_log,
                "Log one line per request (on by default)")
      ->group(group);
  command
      .add_option("--otlp-traces-endpoint", otlp_traces_endpoint,
                  "URL of an OpenTelemetry collector that gets a span of each request, over HTTP: "
                  "http://localhost:4318/v1/traces (default: off)")
      ->type_name("URL")
      ->group(group);
}

void ServeFlags::add_state_flags(CLI::App& command) {
  const OptionGroup option{command, "Files and batches"};
  option
      .without_default("--state-dir", server.state.folder,
                       "Folder for what survives a restart: files, batches and stored responses, "
                       "in a SQLite database (default: nothing is written, and /v1/files and "
                       "/v1/batches are off)")
      ->type_name("FOLDER");
  option("--state-max-bytes", state_max_bytes,
         "Size of that database above which uploads and new batches are refused, for example "
         "20GiB");
  option("--batch-concurrency", server.state.batch_concurrency,
         "Lines of batches that run at once, at most half of --max-open-requests; other requests "
         "go before them")
      ->transform(whole_number(1));
}

void ServeFlags::add_dialect_flags(CLI::App& command) {
  const std::string group = "Tools and reasoning";
  command
      .add_option("--tool-call-parser", dialect.tool_call_parser,
                  fmt::format("Format of the model's tool calls: auto (detected from the chat "
                              "template), none (left as text), or {}",
                              fmt::join(tool_dialect_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--reasoning-parser", dialect.reasoning_parser,
                  fmt::format("Format of the model's reasoning: auto, none, or {}",
                              fmt::join(reasoning_dialect_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--thinking", thinking,
          "Default of enable_thinking for the chat template when a request does not set it: "
          "on, off, or auto (leaves it unset)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--thinking-budget", dialect.thinking_budget,
                  "Maximum reasoning tokens of requests without thinking_token_budget")
      ->transform(whole_number(0))
      ->group(group);
  command
      .add_flag("--allow-special-tokens-in-content", dialect.allow_special_tokens_in_content,
                "Recognise special tokens such as <|im_end|> in the content of chat messages; by "
                "default they are encoded as text")
      ->group(group);
}

void ServeFlags::add_fleet_flags(CLI::App& command) {
  const std::string group = "Several servers";
  OptionGroup{command, group}
      .without_default("--kv-events-config", kv_events_config,
                       "KV events, which tell routers what the prefix cache holds: a JSON object "
                       "with vLLM's keys, for example {\"enable_kv_cache_events\": true, "
                       "\"endpoint\": \"tcp://*:5557\"} (default: off)")
      ->type_name("JSON");
  command
      .add_option("--prefix-peer", prefix_peers,
                  "Internal address of a server of the same model, http://host:port, whose prefix "
                  "pages are fetched after start-up (several may follow); needs --prefix-disk")
      ->type_name("URL")
      ->group(group);
  command
      .add_option("--prefix-peer-secret-file", prefix_peer_secret_file,
                  "File with a secret that servers which share prefix pages have in common; with "
                  "--internal-port, this server's pages may be fetched too")
      ->type_name("FILE")
      ->group(group);
}

void ServeFlags::read_prefix_peers() {
  if (prefix_peers.empty() && prefix_peer_secret_file.empty()) return;
  const char* flag = prefix_peers.empty() ? "--prefix-peer-secret-file" : "--prefix-peer";
  if (prefix_peer_secret_file.empty())
    throw SetupError("--prefix-peer requires --prefix-peer-secret-file, the same on both servers");
  if (model.prefix_disk.empty())
    throw SetupError(fmt::format("{} requires --prefix-disk FOLDER, where pages are kept", flag));
  if (prefix_peers.empty() && !server.internal_port)
    throw SetupError(
        "--prefix-peer-secret-file requires --internal-port, where pages are fetched, or "
        "--prefix-peer, from where they are");
  for (const std::string& url : prefix_peers) {
    if (!url.starts_with("http://") && !url.starts_with("https://"))
      throw SetupError(fmt::format(
          "--prefix-peer {}: give the URL of its internal port, http://host:port", url));
  }
  server.peer_secret =
      std::make_shared<const PeerSecret>(PeerSecret::from_file(prefix_peer_secret_file));
}

void ServeFlags::read_kv_events() {
  if (kv_events_config.empty()) return;
  kv_events = kv_events::parse_config(kv_events_config);
  if (!kv_events.on()) return;
  const std::string flag = "--kv-events-config: ";
  if (server.behind_front)
    throw SetupError(flag +
                     "KV events are available with one model only; serve one, or leave the "
                     "flag out");
  if (!model.enable_prefix_caching)
    throw SetupError(flag +
                     "KV events require the prefix cache; remove "
                     "--no-enable-prefix-caching");
  if (!server.share_prefix_cache) require_one_namespace(server.api_keys);
}

void ServeFlags::read_api_keys() {
  server.api_keys = api_keys.read();
  if (server.max_requests_per_key > 0 && server.api_keys.empty())
    throw SetupError(
        "--max-requests-per-key: the server has no API keys; add --api-key-file, or leave the flag "
        "out");
}

void ServeFlags::prepare_reload() {
  if (server.behind_front || api_keys.file.empty()) return;
  const bool one_namespace = kv_events.on() && !server.share_prefix_cache;
  server.reload_api_keys = [flags = api_keys, one_namespace] {
    std::vector<server::ApiKey> keys = flags.read();
    if (one_namespace) require_one_namespace(keys);
    return keys;
  };
}

void ServeFlags::add_to(CLI::App& command) {
  command.add_option(
      "MODEL", models,
      std::string(kModelHelp) + ". With none or several, each is loaded when a request names it");
  model.add_settings_to(command);
  model.add_batch_flags_to(command);
  model.add_disk_flags_to(command);
  model.add_image_flags_to(command);
  command
      .add_option("--allowed-media-domains", allowed_media_domains,
                  "Hosts from which images are fetched over https when a request names their URL: "
                  "one or more, comma-separated or a JSON list as in vLLM (default: none)")
      ->delimiter(',')
      ->type_name("HOST")
      ->allow_extra_args(false)
      ->group("Images");
  pooling.add_to(command);
  command
      .add_option("--generation-config", generation_config,
                  "Source of default sampling parameters: auto (the model's "
                  "generation_config.json, otherwise temperature 0.7, top_p 0.95 and min_p 0.05) "
                  "or vllm (OpenAI's defaults: temperature 1)")
      ->check(CLI::IsMember({"auto", "vllm"}))
      ->capture_default_str()
      ->group("Model and memory");
  add_access_flags(command);
  add_limit_flags(command);
  add_state_flags(command);
  add_dialect_flags(command);
  lora.add_to(command);
  add_fleet_flags(command);
  model.cluster.add_to(command);
  front.add_to(command);
  // Hidden: set by octavo launch.
  command.add_flag("--end-with-stdin", end_with_stdin)->group("");
  // Hidden: set by the front.
  command.add_option("--status-fd", status_fd)->group("");
  command.add_flag("--plan-only", plan_only)->group("");
  // with_config_file() has already read it; added here for --help.
  command
      .add_option("--config", config,
                  "TOML file with one flag per line, for example max-num-seqs = 32. Flags on the "
                  "command line take precedence")
      ->type_name("FILE");
}

EngineOptions ServeFlags::engine_options() const {
  EngineOptions options = model.engine_options();
  options.pooling = pooling.options();
  options.serves_requests = true;
  options.model_context = pooling.model_context();
  options.adapters = lora.options();
  // A request with several prompts counts as several engine requests.
  options.max_open_requests =
      std::max(options.max_open_requests, server.max_open_requests + server.max_open_sequences);
  return options;
}

void ServeFlags::finish() {
  // The front checks the keys of its clients, and may have them from the environment.
  if (!server.behind_front) read_api_keys();
  read_kv_events();
  read_prefix_peers();
  prepare_reload();
  expand_json_lists(server.cors.allowed_origins, "--allowed-origins");
  expand_json_lists(allowed_media_domains, "--allowed-media-domains");
  if (!allowed_media_domains.empty())
    media_fetcher = std::make_shared<const api::UrlFetcher>(
        api::UrlFetcherOptions{.hosts = allowed_media_domains});
  server.sse_keepalive = milliseconds(sse_keepalive);
  server.drain_timeout = milliseconds(drain_timeout);
  server.drain_delay = milliseconds(drain_delay);
  server.state.max_bytes = static_cast<int64_t>(parse_bytes(state_max_bytes, "--state-max-bytes"));
  server.version = OCTAVO_VERSION;
  // A request to continue an answer holds the tokens of the prompt besides the body of the client.
  if (server.behind_front) server.limits.body_bytes *= 2;
  server.allow_lora_updates = lora.finish();
  model.cluster.check();
  if (model.cluster.on() && lora.enable_lora)
    throw SetupError(
        fmt::format("--enable-lora cannot be combined with {}; {}, or serve the model from one "
                    "machine",
                    model.cluster.size_flag(),
                    model.cluster.tensor() ? "merge one adapter into the model's files"
                                           : "merge one adapter with --merge-adapter on every "
                                             "machine"));
  if (server.internal_port && server.internal_port != 0 && *server.internal_port == server.port &&
      server.internal_host == server.host)
    throw SetupError("--internal-port: is the same as --port; choose another");
  // The children of a front process that was killed end within 5 seconds.
  if (server.behind_front) server.state.lock_timeout = std::chrono::seconds(10);
  if (thinking != "auto") dialect.thinking = thinking == "on";
  if (server.uds.empty() && !server::is_loopback(server.host) && server.api_keys.empty()) {
    throw SetupError(
        fmt::format("--host {} accepts connections from other machines: give --api-key-file, set "
                    "OCTAVO_API_KEY, or listen on 127.0.0.1",
                    server.host));
  }
}

}  // namespace octavo
