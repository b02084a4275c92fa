#include "cli/serve_front.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/bounded_writer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/service_notify.h"
#include "base/system_memory.h"
#include "base/units.h"
#include "cli/parse/parse_error.h"
#include "front/front_server.h"
#include "front/machine_plan.h"
#include "front/model_pool.h"
#include "front/model_routes.h"
#include "front/ollama_routes.h"
#include "server/listener.h"
#include "server/tracing/otlp_exporter.h"
#include "text/helper_jobs.h"

namespace octavo {
namespace {

// Parses the flags of a model as its process will, so that a mistake is found at start-up.
void check_model_flags(const std::string& model, const std::vector<std::string>& flags) {
  CLI::App app;
  app.name("octavo");
  ServeFlags parsed;
  parsed.add_to(*app.add_subcommand("serve"));
  std::vector<std::string> arguments = {"serve", "MODEL"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw SetupError(
        fmt::format("--preset, [{}]: {}", model, explain_parse_error(app, error, arguments)));
  }
}

front::Preset checked_preset(const std::string& path) {
  if (path.empty()) return {};
  front::Preset preset = front::read_preset(path);
  check_model_flags("*", preset.flags);
  for (const front::ModelPreset& model : preset.models) check_model_flags(model.name, model.flags);
  return preset;
}

front::ModelPoolOptions pool_options(const ServeFlags& flags, const CLI::App& command) {
  const FrontFlags& own = flags.front;
  const auto keep_alive = front::parse_keep_alive(own.keep_alive);
  if (!keep_alive) {
    throw SetupError(fmt::format(
        "--keep-alive {}: write a duration such as 5m or 1h30m, a number of seconds, or -1",
        own.keep_alive));
  }
  front::ModelPoolOptions options;
  options.program = own_program();
  options.child_flags = flags_for_models(command);
  options.catalog = {.models = flags.models,
                     .preset = checked_preset(own.preset),
                     .models_dir = own.models_dir,
                     .preload = own.preload,
                     .allow_pull = own.allow_pull,
                     .hub = hub_settings_from_env()};
  options.state_dir = flags.server.state.folder;
  options.memory_fraction = flags.model.memory_fraction;
  options.budget_bytes = front::models_budget(usable_memory_bytes(), options.memory_fraction);
  if (!flags.model.memory_limit.empty()) {
    const uint64_t limit = parse_bytes(flags.model.memory_limit, "--memory-limit");
    options.budget_bytes = std::min(options.budget_bytes, front::models_budget(limit, 1));
  }
  options.kv_share = own.kv_share;
  options.models_max = own.models_max;
  options.keep_alive = *keep_alive;
  options.load_timeout = std::chrono::milliseconds(static_cast<int64_t>(own.load_timeout * 1000));
  return options;
}

void print_front_summary(const front::ModelPool& pool, const ServeFlags& flags,
                         const std::string& url) {
  std::string text = fmt::format("octavo {}\n", OCTAVO_VERSION);
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", name, value);
  };
  const std::vector<std::string> names = pool.known_names();
  std::string list = names.empty() ? "none yet; octavo pull downloads one" : "";
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  row("models", list);
  row("memory", fmt::format("{} for all models", format_bytes(pool.budget_bytes())));
  row("listening", url);
  if (flags.server.uds.empty()) {
    row("playground", url + "/");
    row("metrics", url + "/metrics");
  }
  BoundedWriter(STDOUT_FILENO).write(text + "\n", std::chrono::seconds(1));
}

std::unique_ptr<server::Listener> front_listener(const server::ServerOptions& options) {
  if (!options.uds.empty()) return std::make_unique<server::Listener>(options.uds);
  return std::make_unique<server::Listener>(options.host, options.port);
}

}  // namespace

void serve_front(ServeFlags flags, const CLI::App& command) {
  if (!flags.served_model_name.empty())
    throw SetupError(
        "--served-model-name: several models are served; name each in a section of --preset");
  if (!flags.lora.lora_modules.empty())
    throw SetupError(
        "--lora-modules: several models are served; give it in the section of its model in "
        "--preset");
  if (flags.model.cluster.on())
    throw SetupError(
        fmt::format("{}: available with one model only; serve one, or leave the flag out",
                    flags.model.cluster.size_flag()));
  flags.model.cluster.check();
  if (flags.server.internal_port)
    throw SetupError(
        "--internal-port: available with one model only; serve one, or leave the flag out");
  if (!flags.kv_events_config.empty())
    throw SetupError(
        "--kv-events-config: KV events are available with one model only; serve one, or leave the "
        "flag out");
  if (!flags.prefix_peers.empty() || !flags.prefix_peer_secret_file.empty())
    throw SetupError(
        "--prefix-peer: available with one model only; serve one, or leave the flag out");
  flags.finish();
  if (flags.server.reload_api_keys) server::hold_hangups();
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  init_server_logging(flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  // The processes of the models send spans; this finds a mistake in the settings at start-up.
  if (!flags.otlp_traces_endpoint.empty())
    server::OtlpExporter({.endpoint = flags.otlp_traces_endpoint, .version = OCTAVO_VERSION});
  auto listener = front_listener(flags.server);
  const std::string url = listener->url();
  // The models' processes have limits of their own.
  flags.server.limits.body_bytes = server::kImageBodyBytes;
  flags.server.max_open_bytes =
      std::min<int64_t>(flags.server.max_open_bytes, front::kFrontReserveBytes / 2);
  if (flags.server.uds.empty() && !server::is_loopback(flags.server.host))
    spdlog::warn(
        "listening on {}: API keys and responses are sent unencrypted; put a TLS proxy in front of "
        "the server",
        flags.server.host);
  front::ModelPool pool(listener->io(), pool_options(flags, command));
  front::FrontContext* context = nullptr;
  std::vector<server::Route> routes = front::model_routes(
      pool, {.sse_keepalive = flags.server.sse_keepalive,
             .is_draining = [&] { return context != nullptr && context->draining; }});
  for (server::Route& route : front::ollama_routes(pool, flags.server.version))
    routes.push_back(std::move(route));
  front::FrontServer server(std::move(listener), pool,
                            {.server = flags.server,
                             .more_routes = std::move(routes),
                             .end_children = [&] { return pool.shut_down(); }});
  context = &server.context();
  pool.preload();
  print_front_summary(pool, flags, url);
  notify_service("READY=1\nSTATUS=Serving on " + url);
  server.run();
  spdlog::info("stopped");
  flush_logging();
  // What still waits in the I/O context refers to both the pool and the server.
  std::_Exit(0);
}

}  // namespace octavo
