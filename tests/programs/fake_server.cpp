// The real server over a fake engine, for tests of everything between a socket and a step.
//
// usage: fake_server [--port 0] [--step-ms 0] [--pages 512] [--wedge-token 259 --wedge-seconds 20]
// ...
//
// Prints "listening PORT" and serves until SIGTERM. Scheduler, page pool, prefix cache and step
// loop are real; only the model is fake: it generates bytes, and its answers change if a page is
// used by the wrong sequence. The vocabulary is the 256 bytes, "he", "ll", <|end|> (258, which ends
// an answer) and <tool> (259, which is never generated).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/server.h"
#include "server/tracing/otlp_exporter.h"
#include "support/fake_engine.h"
#include "support/key_options.h"

namespace octavo {
namespace {

struct Options : FakeEngineOptions {
  server::ServerOptions server;
  std::string otlp_traces_endpoint;
  std::string stick_word;
  std::chrono::milliseconds stick_time{0};
};

// A request with the word keeps its text worker, which does not look at its stop token.
void add_stick(Options& options) {
  if (options.stick_word.empty()) return;
  options.server.on_preparation = [word = options.stick_word,
                                   time = options.stick_time](std::string_view body) {
    if (body.find(word) != std::string_view::npos) std::this_thread::sleep_for(time);
  };
}

void serve(Options options) {
  init_server_logging(LogFormat::kText);
  std::shared_ptr<server::OtlpExporter> tracing;
  if (!options.otlp_traces_endpoint.empty()) {
    tracing = std::make_shared<server::OtlpExporter>(
        server::OtlpOptions{.endpoint = options.otlp_traces_endpoint});
    options.server.spans = tracing;
  }
  auto listener = options.server.uds.empty()
                      ? std::make_unique<server::Listener>(options.server.host, options.server.port)
                      : std::make_unique<server::Listener>(options.server.uds);
  const uint16_t port = listener->port();
  FakeEngine engine(options);
  const api::ServedModel model = engine.served();
  server::Server server(std::move(listener), model, options.server);
  fmt::print("listening {}\n", port);
  std::fflush(stdout);
  const bool ended = server.run();
  if (tracing) tracing->stop();
  flush_logging();
  if (!ended) std::_Exit(0);
}

void add_times(CLI::App& app, server::ServerOptions& server) {
  const auto time = [&](const char* name, std::chrono::milliseconds& value, const char* about) {
    app.add_option_function<int64_t>(
        name, [&value](int64_t ms) { value = std::chrono::milliseconds(ms); },
        std::string("Milliseconds ") + about);
  };
  time("--header-timeout", server.limits.header_timeout, "for a request's headers");
  time("--body-timeout", server.limits.body_timeout, "between two reads of a body");
  time("--body-total-timeout", server.limits.body_total_timeout, "for a whole body");
  time("--write-timeout", server.limits.write_timeout, "for a client to receive sent data");
  time("--idle-timeout", server.limits.idle_timeout, "between two requests on a connection");
  time("--drain-timeout", server.drain_timeout, "for open requests after SIGTERM");
  time("--sse-keepalive", server.sse_keepalive, "of silence before a comment");
  time("--stalled-after", server.stalled_after, "without a step before /livez fails");
  time("--preparation-timeout", server.preparation_timeout, "to prepare a request");
  time("--stuck-after", server.stuck_after, "on one job of a text worker before /readyz fails");
}

void add_options(CLI::App& app, Options& options) {
  server::ServerOptions& server = options.server;
  app.add_option("--port", server.port, "0: any free port");
  app.add_option("--uds", server.uds, "A Unix socket instead");
  app.add_flag("--behind-front", server.behind_front);
  add_key_options(app, server);
  app.add_option("--allowed-hosts", server.allowed_hosts)->delimiter(',')->allow_extra_args(false);
  app.add_option("--allowed-origins", server.cors.allowed_origins)->allow_extra_args(false);
  app.add_option("--max-connections", server.max_connections);
  app.add_option("--max-open-requests", server.max_open_requests);
  app.add_option("--max-open-sequences", server.max_open_sequences);
  app.add_option("--max-open-bytes", server.max_open_bytes);
  app.add_option("--max-stored-responses", server.stored_responses.count);
  app.add_option("--max-body-bytes", server.limits.body_bytes);
  app.add_option("--max-header-bytes", server.limits.header_bytes);
  app.add_option("--step-ms", options.step_ms, "Duration of a step");
  app.add_option("--wedge-token", options.wedge_token, "A step with this token in a prompt hangs");
  app.add_option("--wedge-seconds", options.wedge_seconds, "Duration of the hang");
  app.add_option("--max-num-seqs", options.max_num_seqs);
  app.add_option("--max-num-batched-tokens", options.max_num_batched_tokens);
  app.add_option("--max-model-len", options.max_model_len);
  app.add_option("--pages", options.pages);
  app.add_option("--block-tokens", options.block_tokens);
  app.add_option("--pooling", options.pooling, "Embedding model: last or mean; reranker: score");
  app.add_option("--script", options.script, "A file of answers (support/answer_script.h)");
  app.add_option("--chat-template", options.chat_template, "A file");
  app.add_flag("--access-log", server.access_log);
  app.add_option("--otlp-traces-endpoint", options.otlp_traces_endpoint);
  app.add_option("--state-dir", server.state.folder);
  app.add_option("--state-max-bytes", server.state.max_bytes);
  app.add_option("--max-file-bytes", server.state.max_file_bytes);
  app.add_option("--batch-concurrency", server.state.batch_concurrency);
  app.add_option("--stick-word", options.stick_word,
                 "A body with this word keeps its text worker for --stick-ms");
  app.add_option_function<int64_t>(
      "--stick-ms", [&options](int64_t ms) { options.stick_time = std::chrono::milliseconds(ms); });
  app.add_flag("--share-prefix-cache", server.share_prefix_cache);
  add_times(app, server);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  options.server.port = 0;
  options.server.access_log = false;
  CLI::App app("The real server over a fake engine");
  octavo::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  octavo::add_stick(options);
  try {
    octavo::serve(std::move(options));
  } catch (const std::exception& error) {
    fmt::print(stderr, "fake_server: {}\n", error.what());
    return 1;
  }
}
