#include "cli/serve_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "server/api_keys.h"
#include "server/server.h"

namespace octavo {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// One key per line; blank lines and lines that begin with # are skipped.
void read_keys(const std::string& path, std::vector<std::string>& keys) {
  std::ifstream file(path);
  if (!file) throw SetupError("--api-key-file: cannot read " + path);
  const size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!server::is_blank_key(line) && line.front() != '#') keys.push_back(line);
  }
  if (keys.size() == before) throw SetupError("--api-key-file: no key in " + path);
}

// An empty key would be matched by requests that send none.
void add_keys(const std::string& file, std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (server::is_blank_key(key))
      throw SetupError("--api-key: the key is empty; give a key, or leave the flag out");
  if (!file.empty()) read_keys(file, keys);
  if (const char* key = std::getenv("OCTAVO_API_KEY")) {
    if (server::is_blank_key(key))
      throw SetupError("OCTAVO_API_KEY: the key is empty; set a key, or unset the variable");
    keys.emplace_back(key);
  }
}

}  // namespace

void ServeFlags::add_access_flags(CLI::App& command) {
  const std::string group = "Address and access";
  command
      .add_option("--host", server.host,
                  "Address to listen on. Any but this machine's own needs an API key")
      ->capture_default_str()
      ->group(group);
  command.add_option("--port", server.port, "Port to listen on; 0 takes a free one")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--api-key", server.api_keys,
          "A key clients must send as Authorization: Bearer KEY; may be given several times. "
          "Better: --api-key-file, or OCTAVO_API_KEY in the environment")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--api-key-file", api_key_file, "A file with one key a line")->group(group);
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
                  "Web pages of these origins may ask, like https://example.org; * allows all "
                  "(default: none but the built-in page)")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option(
          "--served-model-name", served_model_name,
          "Name of the model in requests and answers; may be given several times (default: the "
          "file's or folder's)")
      ->allow_extra_args(false)
      ->group(group);
}

void ServeFlags::add_limit_flags(CLI::App& command) {
  const std::string group = "Limits and logs";
  const auto option = [&](const char* name, auto& value, const char* about) {
    return command.add_option(name, value, about)->capture_default_str()->group(group);
  };
  option("--max-open-requests", server.max_open_requests,
         "Requests that may be open, waiting ones included; more get 429 and a time to come back")
      ->check(CLI::PositiveNumber);
  option("--max-connections", server.max_connections, "Open connections; more get 503")
      ->check(CLI::PositiveNumber);
  option("--max-stored-responses", server.stored_responses.count,
         "Responses kept for previous_response_id, 64 MiB at most; those not used for longest are "
         "dropped. 0 keeps none");
  option("--sse-keepalive", sse_keepalive,
         "Seconds of silence after which a stream sends a comment; 0 sends none")
      ->check(CLI::NonNegativeNumber);
  option("--drain-timeout", drain_timeout,
         "Seconds open requests have after SIGTERM before they are cut off")
      ->check(CLI::NonNegativeNumber);
  option("--log-format", log_format, "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}));
  command
      .add_flag("--access-log,!--no-access-log", server.access_log,
                "A line for every request (on unless switched off)")
      ->group(group);
}

void ServeFlags::add_dialect_flags(CLI::App& command) {
  const std::string group = "Tools and reasoning";
  command
      .add_option("--tool-call-parser", dialect.tool_call_parser,
                  fmt::format("How the model writes tool calls: auto goes by its chat template, "
                              "none leaves them text; or {}",
                              fmt::join(tool_dialect_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--reasoning-parser", dialect.reasoning_parser,
                  fmt::format("How it writes its reasoning: auto, none, or {}",
                              fmt::join(reasoning_dialect_names(), ", ")))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--thinking", thinking,
                  "on or off: what the chat template is told when a request does not say; auto "
                  "tells it nothing")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--thinking-budget", dialect.thinking_budget,
                  "The longest reasoning in tokens, when a request has no thinking_token_budget")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
}

void ServeFlags::add_to(CLI::App& command) {
  model.add_to(command);
  model.add_batch_flags_to(command);
  model.add_disk_flags_to(command);
  pooling.add_to(command);
  command
      .add_option("--generation-config", generation_config,
                  "Sampling a request does not ask for: auto takes the model's "
                  "generation_config.json, vllm takes OpenAI's defaults")
      ->check(CLI::IsMember({"auto", "vllm"}))
      ->capture_default_str()
      ->group("Model and memory");
  add_access_flags(command);
  add_limit_flags(command);
  add_dialect_flags(command);
  // Read by with_config_file() before the flags are; here for --help.
  command
      .add_option(
          "--config", config,
          "A TOML file with flags by their names, one a line: max-num-seqs = 32. The command "
          "line comes first")
      ->type_name("FILE");
}

void ServeFlags::finish() {
  add_keys(api_key_file, server.api_keys);
  server.sse_keepalive = milliseconds(sse_keepalive);
  server.drain_timeout = milliseconds(drain_timeout);
  server.version = OCTAVO_VERSION;
  if (thinking != "auto") dialect.thinking = thinking == "on";
  if (!server::is_loopback(server.host) && server.api_keys.empty()) {
    throw SetupError(
        fmt::format("--host {} lets other machines ask: give --api-key-file or set OCTAVO_API_KEY, "
                    "or listen on "
                    "127.0.0.1",
                    server.host));
  }
}

}  // namespace octavo
