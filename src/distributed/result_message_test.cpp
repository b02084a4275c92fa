#include "distributed/result_message.h"

#include <gtest/gtest.h>

#include "distributed/cluster_error.h"
#include "distributed/testing/random_messages.h"

namespace octavo {
namespace {

void expect_same_logprobs(const std::vector<TokenLogprobs>& a,
                          const std::vector<TokenLogprobs>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token, b[i].token);
    EXPECT_EQ(a[i].logprob, b[i].logprob);
    EXPECT_EQ(a[i].rank, b[i].rank);
    EXPECT_EQ(a[i].top, b[i].top);
  }
}

TEST(ResultMessage, ComesBackAndFitsItsStep) {
  RandomMessages random(1);
  int errors = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const StepMessage step = random.step(i);
    const ResultMessage message = random.result(step);
    const ResultMessage decoded = decode_result(encode(message));
    EXPECT_EQ(decoded.number, i);
    EXPECT_EQ(decoded.error, message.error);
    errors += message.error ? 1 : 0;
    EXPECT_EQ(decoded.result.tokens, message.result.tokens);
    expect_same_logprobs(decoded.result.logprobs, message.result.logprobs);
    EXPECT_EQ(decoded.result.hashes, message.result.hashes);
    expect_same_logprobs(decoded.result.prompt_logprobs, message.result.prompt_logprobs);
    EXPECT_EQ(decoded.result.hidden.width, message.result.hidden.width);
    EXPECT_EQ(decoded.result.hidden.values, message.result.hidden.values);
    EXPECT_EQ(decoded.result.predicted, message.result.predicted);
    if (message.error) continue;
    EXPECT_NO_THROW(ResultShape(step.batch).check(decoded.result, RandomMessages::limits().vocab));
  }
  EXPECT_GT(errors, 5);
}

TEST(ResultMessage, EveryTruncationIsRefused) {
  RandomMessages random(2);
  for (int i = 0; i < 20; ++i) {
    const auto bytes = encode(random.result(random.step()));
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THROW(decode_result(std::span(bytes).first(size)), WireError);
  }
}

TEST(ResultShape, OtherResultsAreRefused) {
  Batch batch;
  batch.sampling.resize(2);
  batch.hidden_rows = {0};
  batch.prompt_logprobs.resize(1);
  const StepResult right{.tokens = {1, 2},
                         .logprobs = {},
                         .hashes = {},
                         .prompt_logprobs = {{.token = 3}},
                         .hidden = {.width = 2, .values = {1, 2}}};
  const ResultShape shape(batch);
  EXPECT_NO_THROW(shape.check(right, 4));
  const auto refuse = [&](const char* what, auto change) {
    StepResult result = right;
    change(result);
    EXPECT_THROW(shape.check(result, 4), WireError) << what;
  };
  refuse("tokens", [](StepResult& result) { result.tokens.pop_back(); });
  refuse("token", [](StepResult& result) { result.tokens[1] = 4; });
  refuse("negative", [](StepResult& result) { result.tokens[1] = -1; });
  refuse("logprobs", [](StepResult& result) { result.logprobs.resize(1); });
  refuse("hashes", [](StepResult& result) { result.hashes.resize(3); });
  refuse("prompt", [](StepResult& result) { result.prompt_logprobs.clear(); });
  refuse("prompt token", [](StepResult& result) { result.prompt_logprobs[0].token = 4; });
  refuse("top token", [](StepResult& result) { result.prompt_logprobs[0].top = {{4, 0.0F}}; });
  refuse("hidden", [](StepResult& result) { result.hidden.values.pop_back(); });
  refuse("width", [](StepResult& result) { result.hidden = {}; });
  refuse("predicted", [](StepResult& result) { result.predicted = {1, 1}; });
  EXPECT_NO_THROW(shape.check(right, 4, 2));
  EXPECT_THROW(shape.check(right, 4, 3), WireError);
}

TEST(ResultShape, ResultsWithoutWhatTheStepRequestsAreRefused) {
  const auto check = [](const RowSampling& row, const StepResult& result) {
    Batch batch;
    batch.sampling = {{}, row};
    ResultShape(batch).check(result, 4);
  };
  const StepResult plain{.tokens = {1, 2}, .logprobs = {}, .hashes = {}, .prompt_logprobs = {}};
  StepResult full = plain;
  full.logprobs.resize(2);
  full.hashes.resize(2);
  EXPECT_NO_THROW(check({}, plain));
  EXPECT_THROW(check({.logprobs = 0}, plain), WireError);
  EXPECT_THROW(check({.hash_logits = true}, plain), WireError);
  EXPECT_NO_THROW(check({.logprobs = 0, .hash_logits = true}, full));
}

}  // namespace
}  // namespace octavo
