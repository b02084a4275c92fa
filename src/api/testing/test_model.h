// test_model.h - a served model without an engine, for tests.
#pragma once

#include "api/served_model.h"
#include "base/error.h"
#include "text/testing/test_vocab.h"

namespace octavo::api {

// Refuses every request.
class NoEngine : public EngineClient {
 public:
  RequestId submit(Request, UpdateSink) override { throw RequestError(503, "", "no engine"); }
  void abort(RequestId, std::optional<int>) override {}
  void reset_prefix_cache() override {}
  void close() override {}
  bool wait_until_idle(std::chrono::milliseconds) override { return true; }
  EngineStats stats() const override { return {}; }
  std::chrono::steady_clock::time_point heartbeat() const override {
    return std::chrono::steady_clock::now();
  }
};

// Byte tokens (test_vocab.h) and a context of 100.
class TestModel {
 public:
  TestModel()
      : served_{.engine = engine_,
                .text = {.tokenizer = tokenizer_of(byte_level_vocab()), .chat_template = nullptr},
                .names = {"tiny", "alias"},
                .unlisted_names = {"models/tiny"},
                .root = "tiny",
                .max_model_len = 100,
                .vocab = 260,
                .block_tokens = 16,
                .fingerprint = "fp_test"} {
    served_.grammars = std::make_shared<GrammarCompiler>(served_.text.tokenizer, served_.vocab,
                                                         std::vector<TokenId>{258});
    served_.text.chat_template = ChatTemplate::from_source(
        {.source = "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                   "{% endfor %}{% if add_generation_prompt %}>{% endif %}"});
  }
  ServedModel& operator*() { return served_; }
  ServedModel* operator->() { return &served_; }

 private:
  NoEngine engine_;
  ServedModel served_;
};

}  // namespace octavo::api
