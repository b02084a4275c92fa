// The real server over a fake engine, for the tests of everything between a socket and a step.
//
// usage: fake_server [--port 0] [--step-ms 0] [--pages 512] [--wedge-token 259 --wedge-seconds 20]
// ...
//
// Prints "listening PORT" and serves until SIGTERM. Scheduler, page pool, prefix cache and step
// loop are the real ones; only the model is not: it draws bytes, and its answers change when a page
// is in the wrong hands. The vocabulary is the 256 bytes, "he", "ll", <|end|> (258, which ends an
// answer) and <tool> (259, which is never drawn).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/log.h"
#include "engine/engine_loop.h"
#include "engine/fake_model.h"
#include "server/server.h"
#include "text/chat_template.h"
#include "text/test_vocab.h"

namespace octavo {
namespace {

constexpr TokenId kEnd = 258;
constexpr int kDrawnVocab = 259;

struct Options {
  server::ServerOptions server;
  int step_ms = 0;
  int wedge_token = -1;
  int wedge_seconds = 20;
  int max_num_seqs = 8;
  int max_num_batched_tokens = 64;
  int max_model_len = 1024;
  int pages = 512;
  int block_tokens = 16;
  std::string pooling;  // "last" or "mean": embeds and does not generate
};

// Takes its time, and hangs where it is told to.
class SlowRunner : public StepRunner {
 public:
  SlowRunner(StepRunner& inner, const Options& options) : inner_(inner), options_(options) {}

  bool queues_at_once(const Batch& batch) const override { return inner_.queues_at_once(batch); }
  void start(const Batch& batch) override {
    wedged_ |= std::ranges::count(batch.tokens, options_.wedge_token) > 0;
    inner_.start(batch);
  }
  StepResult finish() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(options_.step_ms));
    if (std::exchange(wedged_, false))
      std::this_thread::sleep_for(std::chrono::seconds(options_.wedge_seconds));
    return inner_.finish();
  }
  void drop() override { inner_.drop(); }

 private:
  StepRunner& inner_;
  const Options& options_;
  bool wedged_ = false;
};

class FakeEngine {
 public:
  explicit FakeEngine(const Options& options, int vocab)
      : plan_(plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}},
                         options.block_tokens)),
        pool_(options.pages),
        scheduler_({.max_num_seqs = options.max_num_seqs,
                    .max_num_batched_tokens = options.max_num_batched_tokens,
                    .max_model_len = options.max_model_len,
                    .vocab = vocab,
                    .draws = options.pooling.empty(),
                    .stop_token_ids = {kEnd}},
                   prefixes_),
        fake_(model_, options.pages),
        runner_(fake_, options) {}
  ~FakeEngine() {
    loop_.stop();
    thread_.join();
  }
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  EngineClient& client() { return loop_; }

 private:
  CachePlan plan_;
  PagePool pool_;
  PrefixCache prefixes_{plan_, pool_};
  Scheduler scheduler_;
  FakeModel model_{plan_, kDrawnVocab};
  FakeRunner fake_;
  SlowRunner runner_;
  EngineLoop loop_{{}, prefixes_, scheduler_, runner_};
  std::thread thread_{[this] { loop_.run(); }};
};

std::shared_ptr<const ChatTemplate> chat_template() {
  return ChatTemplate::from_source(
      {.source = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}assistant: {% endif %}"});
}

std::optional<PoolingPlan> pooling_of(const Options& options) {
  if (options.pooling.empty()) return std::nullopt;
  return PoolingPlan{.kind = options.pooling == "mean" ? Pooling::kMean : Pooling::kLast};
}

void serve(const Options& options) {
  init_server_logging(LogFormat::kText);
  auto listener = std::make_unique<server::Listener>(options.server.host, options.server.port);
  const uint16_t port = listener->port();
  const auto tokenizer = tokenizer_of(byte_level_vocab());
  FakeEngine engine(options, tokenizer->vocab_size());
  const server::ServedModel model{
      .engine = engine.client(),
      .text = {tokenizer, chat_template()},
      .grammars = std::make_shared<GrammarCompiler>(tokenizer, tokenizer->vocab_size(),
                                                    std::vector<TokenId>{kEnd}),
      .dialect = choose_chat_dialect({tokenizer, chat_template()}, {kEnd}, {}),
      .names = {"fake", "fake/alias"},
      .root = "fake",
      .created = 1,
      .max_model_len = options.max_model_len,
      .vocab = tokenizer->vocab_size(),
      .max_num_seqs = options.max_num_seqs,
      .block_tokens = options.block_tokens,
      .fingerprint = "fp_fake",
      .pooling = pooling_of(options),
      .hidden = kFakeWidth};
  server::Server server(std::move(listener), model, options.server);
  fmt::print("listening {}\n", port);
  std::fflush(stdout);
  server.run();
  flush_logging();
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
  time("--write-timeout", server.limits.write_timeout, "for a client to take what it was sent");
  time("--idle-timeout", server.limits.idle_timeout, "between two requests of a connection");
  time("--drain-timeout", server.drain_timeout, "for open requests after SIGTERM");
  time("--sse-keepalive", server.sse_keepalive, "of silence before a comment");
  time("--stalled-after", server.stalled_after, "without a step before /livez turns red");
}

void add_options(CLI::App& app, Options& options) {
  server::ServerOptions& server = options.server;
  app.add_option("--port", server.port, "0 takes a free one");
  app.add_option("--api-key", server.api_keys)->allow_extra_args(false);
  app.add_option("--allowed-origins", server.cors.allowed_origins)->allow_extra_args(false);
  app.add_option("--max-connections", server.max_connections);
  app.add_option("--max-open-requests", server.max_open_requests);
  app.add_option("--max-open-bytes", server.max_open_bytes);
  app.add_option("--max-stored-responses", server.stored_responses.count);
  app.add_option("--max-body-bytes", server.limits.body_bytes);
  app.add_option("--max-header-bytes", server.limits.header_bytes);
  app.add_option("--step-ms", options.step_ms, "How long a step takes");
  app.add_option("--wedge-token", options.wedge_token, "A step with this token in a prompt hangs");
  app.add_option("--wedge-seconds", options.wedge_seconds, "For so long");
  app.add_option("--max-num-seqs", options.max_num_seqs);
  app.add_option("--max-num-batched-tokens", options.max_num_batched_tokens);
  app.add_option("--max-model-len", options.max_model_len);
  app.add_option("--pages", options.pages);
  app.add_option("--block-tokens", options.block_tokens);
  app.add_option("--pooling", options.pooling, "Embed: last or mean");
  app.add_flag("--access-log", server.access_log);
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
  try {
    octavo::serve(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fake_server: {}\n", error.what());
    return 1;
  }
}
