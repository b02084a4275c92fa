// octavo serve - the HTTP server.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/bounded_writer.h"
#include "base/compute_pool.h"
#include "base/log.h"
#include "base/service_notify.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/distributed/cluster_watch.h"
#include "cli/distributed/end_with_stdin.h"
#include "cli/serve_child.h"
#include "cli/serve_flags.h"
#include "cli/serve_front.h"
#include "cli/status_channel.h"
#include "kernels/cpu/isa.h"
#include "kernels/runtime/device.h"
#include "kv_events/event_publisher.h"
#include "llm/make_served_model.h"
#include "prefix_peer/page_fetcher.h"
#include "server/server.h"
#include "server/tracing/otlp_exporter.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// The text printed at start-up. It is printed at once, and not at all if stdout is a pipe that is
// full: the server must start and stop even if its output is not read.
class StartSummary {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void row(const char* name, const std::string& value) { add("  {:<12}{}\n", name, value); }
  void print() const { BoundedWriter(STDOUT_FILENO).write(text_, std::chrono::seconds(1)); }

 private:
  std::string text_;
};

struct Example {
  const char* path;
  const char* body;
};

Example example_for(const Llm& llm) {
  if (llm.engine().score_head()) {
    return {
        "/v1/rerank",
        R"({"query": "What does a panda eat?", "documents": ["Pandas eat bamboo.", "Paris is a city."]})"};
  }
  if (llm.engine().model().pooling) return {"/v1/embeddings", R"({"input": "Once upon a time"})"};
  if (llm.can_chat())
    return {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "Say hello."}]})"};
  return {"/v1/completions", R"({"prompt": "Once upon a time", "max_tokens": 64})"};
}

void add_curl(StartSummary& summary, const std::string& url, const Example& example, bool key) {
  summary.add("\nTry it:\n  curl {}{} {}-H 'Content-Type: application/json' \\\n    -d '{}'\n\n",
              url, example.path, key ? "-H \"Authorization: Bearer $OCTAVO_API_KEY\" " : "",
              example.body);
}

void add_device(StartSummary& summary, const DeviceFacts& device, DType dtype) {
  if (device.kind == DeviceKind::kCpu) {
    summary.row("device", fmt::format("CPU, {}, {} threads", name_of(cpu::active_isa()),
                                      compute_pool().threads()));
    return;
  }
  summary.row("device", describe(device));
  if (const auto advice = dtype_advice(device, dtype)) summary.row("advice", *advice);
}

struct Address {
  std::string url;
  std::string curl;      // as an argument of curl
  std::string internal;  // empty: none
};

std::unique_ptr<server::Listener> make_listener(const server::ServerOptions& options) {
  if (!options.uds.empty()) return std::make_unique<server::Listener>(options.uds);
  return std::make_unique<server::Listener>(options.host, options.port);
}

// Null without --internal-port.
std::unique_ptr<server::Listener> make_internal_listener(const server::ServerOptions& options,
                                                         boost::asio::io_context& io) {
  if (!options.internal_port) return nullptr;
  if (!server::is_loopback(options.internal_host))
    spdlog::warn(
        "--internal-host {}: other machines can read metrics and render prompts without a "
        "key",
        options.internal_host);
  return std::make_unique<server::Listener>(
      io, options.internal_host, *options.internal_port,
      server::AddressFlags{.host = "--internal-host", .port = "--internal-port"});
}

void print_summary(const Llm& llm, const api::ServedModel& served, const ServeFlags& flags,
                   const Address& address, double seconds) {
  const ModelDescription& model = llm.engine().model();
  StartSummary summary;
  summary.add("octavo {}\n", OCTAVO_VERSION);
  summary.row("model", fmt::format("{}: {}, {} parameters, {} {}", served.name(), model.plan.family,
                                   format_count(model.parameters), format_bytes(model.file_bytes),
                                   model.container));
  summary.row("computes in",
              fmt::format("{}{}", name_of(model.dtype),
                          model.quantization.empty() ? "" : ", weights " + model.quantization));
  if (model.pooling)
    summary.row(model.pooling->labels > 0 ? "scores" : "embeds", model.pooling->describe());
  add_device(summary, device_facts(), model.dtype);
  summary.row(
      "context",
      fmt::format("{} tokens; up to {} sequences at once, up to {} open requests",
                  served.max_model_len, served.max_num_seqs, flags.server.max_open_requests));
  if (served.adapters) summary.row("adapters", flags.lora.describe());
  if (!model.pooling) summary.row("speculation", llm.engine().speculation().text());
  if (llm.can_chat() && !model.pooling) summary.row("tools", served.dialect.describe());
  if (!model.pooling)
    summary.row("sampling", served.defaults.describe() + " unless a request sets it");
  const std::string ranks = llm.engine().ranks_table();
  summary.add("{}", ranks.empty() ? llm.engine().memory().table() : ranks);
  summary.row("listening", fmt::format("{} (ready in {:.1f} s)", address.url, seconds));
  if (!address.internal.empty()) summary.row("internal", address.internal);
  if (flags.server.uds.empty()) {
    summary.row("playground", address.url + "/");
    summary.row("metrics", address.url + "/metrics");
  }
  if (flags.server.spans) summary.row("traces", flags.otlp_traces_endpoint);
  add_curl(summary, address.curl, example_for(llm), !flags.server.api_keys.empty());
  summary.print();
}

// Null without KV events.
std::unique_ptr<kv_events::EventPublisher> start_kv_events(const kv_events::Config& config) {
  if (!config.on()) return nullptr;
  auto publisher = std::make_unique<kv_events::EventPublisher>(config);
  for (const std::string& endpoint :
       {publisher->config().endpoint, publisher->config().replay_endpoint}) {
    if (!endpoint.empty() && !kv_events::is_local(endpoint))
      spdlog::warn(
          "KV events at {}: the tokens of prompts are sent unencrypted to anyone who connects; use "
          "a private network",
          endpoint);
  }
  return publisher;
}

// Null without --otlp-traces-endpoint.
std::shared_ptr<server::OtlpExporter> start_tracing(ServeFlags& flags) {
  if (flags.otlp_traces_endpoint.empty()) return nullptr;
  auto exporter = std::make_shared<server::OtlpExporter>(
      server::OtlpOptions{.endpoint = flags.otlp_traces_endpoint, .version = OCTAVO_VERSION});
  if (exporter->on()) flags.server.spans = exporter;
  return exporter;
}

// Null without --prefix-peer.
std::unique_ptr<PageFetcher> fetch_pages(const Llm& llm, const ServeFlags& flags) {
  if (flags.prefix_peers.empty()) return nullptr;
  return std::make_unique<PageFetcher>(
      *llm.engine().disk_tier(),
      PageFetcherOptions{.urls = flags.prefix_peers, .secret = *flags.server.peer_secret});
}

void serve_model(ServeFlags flags) {
  const auto started = Clock::now();
  flags.finish();
  if (flags.end_with_stdin) end_with_stdin();
  if (flags.server.reload_api_keys) server::hold_hangups();
  // Hitting the file size limit (ulimit -f) must be a write error, not kill the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // A reader of the log that goes away must not end the server.
  std::signal(SIGPIPE, SIG_IGN);
  init_server_logging(flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  auto listener = make_listener(flags.server);
  auto internal = make_internal_listener(flags.server, listener->io());
  const Address address{.url = listener->url(),
                        .curl = listener->curl_target(),
                        .internal = internal ? internal->url() : ""};
  const auto tracing = start_tracing(flags);
  const auto events = start_kv_events(flags.kv_events);
  flags.model.find();
  EngineOptions options = flags.engine_options();
  if (events) {
    options.prefix_observer = &events->observer();
    flags.server.kv_event_sources = events->config().sources();
  }
  const auto cluster =
      flags.model.form_cluster([](const std::string& text) { spdlog::info("{}", text); });
  options.cluster = cluster.get();
  const auto llm = flags.model.load(options);
  const api::ServedModel served = make_served_model(*llm, flags.model, options,
                                                    {.served_model_name = flags.served_model_name,
                                                     .generation_config = flags.generation_config,
                                                     .dialect = flags.dialect,
                                                     .version = OCTAVO_VERSION,
                                                     .lora_modules = flags.lora.sources,
                                                     .media_fetcher = flags.media_fetcher,
                                                     .use_helpers = true});
  flags.server.max_open_bytes = served.request_memory.body_bytes;
  if (served.images) {
    // A child of a front process gets the tokens of an answer besides.
    const size_t bytes = server::kImageBodyBytes * (flags.server.behind_front ? 2 : 1);
    flags.server.limits.body_bytes = std::max(flags.server.limits.body_bytes, bytes);
  }
  flags.server.stored_responses.bytes = served.request_memory.stored_bytes;
  flags.server.stored_responses.response_bytes = served.request_memory.stored_response_bytes;
  if (flags.server.uds.empty() && !server::is_loopback(flags.server.host))
    spdlog::warn(
        "listening on {}: API keys and responses are sent unencrypted; put a TLS proxy in front of "
        "the server",
        flags.server.host);
  {
    const auto fetcher = fetch_pages(*llm, flags);
    server::Server server(std::move(listener), served, flags.server);
    if (internal) server.add_internal(std::move(internal));
    print_summary(*llm, served, flags, address,
                  std::chrono::duration<double>(Clock::now() - started).count());
    if (flags.status) {
      flags.status->send(front::ChildReady{.planned_bytes = llm->engine().memory().total_bytes(),
                                           .max_model_len = served.max_model_len,
                                           .takes_images = served.images != nullptr});
    }
    const ClusterWatch watch(cluster.get(), [&] { server.drain(); });
    notify_service("READY=1\nSTATUS=Serving " + served.name() + " on " + address.url);
    const bool ended = server.run();
    if (tracing) tracing->stop();
    // The engine cannot end its steps without the other ranks.
    if (watch.failure()) {
      flush_logging();
      std::_Exit(1);
    }
    if (!ended) {
      if (cluster) cluster->shutdown();
      flush_logging();
      std::_Exit(0);
    }
  }
  spdlog::info("stopped");
  flush_logging();
  // Do not wait for a running step: no client is left to read its output.
  if (!llm->engine().wait_until_idle(std::chrono::milliseconds(200))) {
    if (cluster) cluster->shutdown();
    std::_Exit(0);
  }
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand(
      "serve",
      "Serve models over HTTP with the OpenAI and Anthropic APIs and a browser playground.\n\n"
      "  octavo serve MODEL\n"
      "  octavo serve                 all models of octavo ls, each loaded when a request names "
      "it\n"
      "  octavo serve MODEL MODEL     the same, with these models\n"
      "  octavo serve MODEL --port 9000 --max-num-seqs 32 --max-model-len 4096\n"
      "  octavo serve MODEL --config serve.toml\n\n"
      "By default it listens on this machine only. Output is bit-identical regardless of load.\n"
      "On SIGTERM, the server finishes open requests before it exits.");
  flags->add_to(*command);
  command->callback([flags, command] {
    if (flags->models.size() != 1 || FrontFlags::any_given(*command))
      return serve_front(*flags, *command);
    flags->model.model = flags->models.front();
    if (flags->status_fd >= 0) return serve_child(*flags, serve_model);
    serve_model(*flags);
  });
}

}  // namespace octavo
