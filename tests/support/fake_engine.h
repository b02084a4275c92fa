// fake_engine.h - the real scheduler, page pool, prefix cache and step loop over a fake model. The
// model generates bytes, and its answers change if a page is used by the wrong sequence. No MLX.
//
// The vocabulary is the 256 bytes, "he", "ll", <|end|> (258, which ends an answer) and <tool> (259,
// which is never generated).
#pragma once

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/served_model.h"
#include "scheduler/engine_loop.h"
#include "scheduler/testing/fake_runner.h"
#include "support/scripted_engine.h"
#include "text/chat_template.h"
#include "text/testing/test_vocab.h"

namespace octavo {

inline constexpr TokenId kFakeEnd = 258;
inline constexpr int kFakeDrawnVocab = 259;

struct FakeEngineOptions {
  int step_ms = 0;
  int wedge_token = -1;
  int wedge_seconds = 20;
  int max_num_seqs = 8;
  int max_num_batched_tokens = 64;
  int max_model_len = 1024;
  int pages = 512;
  int block_tokens = 16;
  std::string pooling;             // "last" or "mean": an embedding model; "score": a reranker
  std::string script = {};         // a file of answers (answer_script.h)
  std::string chat_template = {};  // a file
};

// Delays each step, and hangs at the configured token.
class FakeSlowRunner : public StepRunner {
 public:
  FakeSlowRunner(StepRunner& inner, const FakeEngineOptions& options)
      : inner_(inner), options_(options) {}

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
  const FakeEngineOptions& options_;
  bool wedged_ = false;
};

inline std::shared_ptr<const ChatTemplate> fake_chat_template(const FakeEngineOptions& options) {
  if (!options.chat_template.empty()) {
    std::ifstream file(options.chat_template);
    if (!file) throw SetupError(options.chat_template + ": cannot be read");
    return ChatTemplate::from_source({.source = std::string(std::istreambuf_iterator(file), {}),
                                      .bos_token = "<|end|>",
                                      .eos_token = "<|end|>"});
  }
  return ChatTemplate::from_source(
      {.source = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}assistant: {% endif %}"});
}

inline std::optional<PoolingPlan> fake_pooling_of(const FakeEngineOptions& options) {
  if (options.pooling.empty()) return std::nullopt;
  if (options.pooling == "score") return PoolingPlan{.labels = 1};
  return PoolingPlan{.kind = options.pooling == "mean" ? Pooling::kMean : Pooling::kLast};
}

// The score is the first value of the vector less the second one.
inline std::shared_ptr<const ScoreHead> fake_score_head_of(const FakeEngineOptions& options) {
  if (options.pooling != "score") return nullptr;
  std::vector<float> weight(kFakeWidth);
  weight[0] = 1;
  weight[1] = -1;
  return std::make_shared<const ScoreHead>(
      ScoreHead::Layers{.out = {.rows = 1, .columns = kFakeWidth, .weight = std::move(weight)}});
}

class FakeEngine {
 public:
  explicit FakeEngine(const FakeEngineOptions& options)
      : options_(options),
        plan_(plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}},
                         options.block_tokens)),
        pool_(options.pages),
        scheduler_({.max_num_seqs = options.max_num_seqs,
                    .max_num_batched_tokens = options.max_num_batched_tokens,
                    .max_model_len = options.max_model_len,
                    .vocab = tokenizer_->vocab_size(),
                    .draws = options.pooling.empty(),
                    .stop_token_ids = {kFakeEnd}},
                   prefixes_),
        fake_(model_, options.pages),
        runner_(fake_, options_) {
    if (options.script.empty()) return;
    script_.emplace(options.script);
    scripted_client_.emplace(loop_, *script_, *tokenizer_, kFakeEnd, answers_);
  }
  ~FakeEngine() {
    loop_.stop();
    thread_.join();
  }
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  EngineClient& client() {
    if (scripted_client_) return *scripted_client_;
    return loop_;
  }
  // What requests see of it. The engine must outlive it.
  api::ServedModel served() {
    const auto chat_template = fake_chat_template(options_);
    return {.engine = client(),
            .text = {tokenizer_, chat_template},
            .grammars = std::make_shared<GrammarCompiler>(tokenizer_, tokenizer_->vocab_size(),
                                                          std::vector<TokenId>{kFakeEnd}),
            .dialect = choose_chat_dialect({tokenizer_, chat_template}, {kFakeEnd}, {}),
            .names = {"fake", "fake/alias"},
            .root = "fake",
            .created = 1,
            .max_model_len = options_.max_model_len,
            .vocab = tokenizer_->vocab_size(),
            .max_num_seqs = options_.max_num_seqs,
            .block_tokens = options_.block_tokens,
            .fingerprint = "fp_fake",
            .pooling = fake_pooling_of(options_),
            .score_head = fake_score_head_of(options_),
            .hidden = kFakeWidth,
            .facts = {.container = "gguf", .family = "fake", .quantization = "Q8_0"}};
  }

 private:
  const FakeEngineOptions options_;
  const std::shared_ptr<const Tokenizer> tokenizer_ = tokenizer_of(byte_level_vocab());
  CachePlan plan_;
  PagePool pool_;
  PrefixCache prefixes_{plan_, pool_};
  Scheduler scheduler_;
  FakeModel model_{plan_, kFakeDrawnVocab};
  FakeRunner fake_;
  FakeSlowRunner runner_;
  ScriptedAnswers answers_;
  ScriptedRunner scripted_runner_{runner_, answers_};
  std::optional<AnswerScript> script_;
  EngineLoop loop_{{}, prefixes_, scheduler_, scripted_runner_};
  std::optional<ScriptedClient> scripted_client_;
  std::thread thread_{[this] { loop_.run(); }};
};

}  // namespace octavo
