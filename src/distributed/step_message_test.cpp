#include "distributed/step_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "distributed/testing/random_messages.h"

namespace octavo {
namespace {

void expect_same_rules(const LogitRules& a, const LogitRules& b) {
  EXPECT_EQ(a.repetition_penalty, b.repetition_penalty);
  EXPECT_EQ(a.presence_penalty, b.presence_penalty);
  EXPECT_EQ(a.frequency_penalty, b.frequency_penalty);
  EXPECT_EQ(a.logit_bias, b.logit_bias);
  EXPECT_EQ(a.bad_words, b.bad_words);
  EXPECT_EQ(a.allowed, b.allowed);
  EXPECT_EQ(a.min_tokens, b.min_tokens);
  EXPECT_EQ(a.held_back, b.held_back);
}

void expect_same_history(const RowHistory& a, const RowHistory& b) {
  EXPECT_EQ(a.prompt, b.prompt);
  ASSERT_EQ(a.known, b.known);
  EXPECT_THAT(b.log->first(b.known), testing::ElementsAreArray(a.log->first(a.known)));
  EXPECT_EQ(b.pending, -1);
  EXPECT_EQ(a.assumed_count, b.assumed_count);
  ASSERT_EQ(a.assumed == nullptr, b.assumed == nullptr);
  if (a.assumed == nullptr) return;
  EXPECT_EQ(*a.assumed, *b.assumed);
}

void expect_same_sampling(const RowSampling& a, const RowSampling& b) {
  EXPECT_EQ(a.temperature, b.temperature);
  EXPECT_EQ(a.top_p, b.top_p);
  EXPECT_EQ(a.min_p, b.min_p);
  EXPECT_EQ(a.top_k, b.top_k);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.choice, b.choice);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.hash_logits, b.hash_logits);
  EXPECT_EQ(a.mask == nullptr, b.mask == nullptr);
  ASSERT_EQ(a.rules == nullptr, b.rules == nullptr);
  if (!a.rules) return;
  expect_same_rules(*a.rules, *b.rules);
  expect_same_history(a.history, b.history);
}

void expect_same_rows(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.token_sources, b.token_sources);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.cu_seqlens_q, b.cu_seqlens_q);
  EXPECT_EQ(a.context_lens, b.context_lens);
  EXPECT_EQ(a.logit_rows, b.logit_rows);
  EXPECT_EQ(a.hidden_rows, b.hidden_rows);
  EXPECT_EQ(a.next_tokens, b.next_tokens);
  EXPECT_EQ(a.next_sources, b.next_sources);
  EXPECT_EQ(a.waits_for_previous, b.waits_for_previous);
  ASSERT_EQ(a.block_tables.size(), b.block_tables.size());
  for (size_t i = 0; i < a.block_tables.size(); ++i) {
    EXPECT_EQ(a.block_tables[i].columns, b.block_tables[i].columns);
    EXPECT_EQ(a.block_tables[i].pages, b.block_tables[i].pages);
  }
  ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
  for (size_t i = 0; i < a.prompt_logprobs.size(); ++i) {
    EXPECT_EQ(a.prompt_logprobs[i].row, b.prompt_logprobs[i].row);
    EXPECT_EQ(a.prompt_logprobs[i].target, b.prompt_logprobs[i].target);
    EXPECT_EQ(a.prompt_logprobs[i].count, b.prompt_logprobs[i].count);
  }
  ASSERT_EQ(a.sampling.size(), b.sampling.size());
}

TEST(StepMessage, ComesBack) {
  RandomMessages random(1);
  size_t masked = 0;
  size_t ruled = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const StepMessage step = random.step(i);
    StepMasks masks;
    const StepMessage decoded = decode_step(encode(step), RandomMessages::limits(), &masks);
    EXPECT_EQ(decoded.number, i);
    expect_same_rows(step.batch, decoded.batch);
    ASSERT_EQ(masks.size(), step.batch.sampling.size());
    for (size_t row = 0; row < masks.size(); ++row) {
      const RowSampling& sampling = decoded.batch.sampling[row];
      expect_same_sampling(step.batch.sampling[row], sampling);
      EXPECT_EQ(masks[row], sampling.mask);
      masked += sampling.mask != nullptr ? 1 : 0;
      ruled += sampling.rules != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(masked, 50u);
  EXPECT_GT(ruled, 50u);
}

TEST(StepMessage, CarriesTheSourcesOfTokens) {
  RandomMessages random(5);
  size_t taken = 0;
  for (uint64_t i = 1; i < 300; ++i) {
    const StepMessage step = random.step_that_waits(i, 7);
    for (const StepPart part : {StepPart::kLayers, StepPart::kDraws}) {
      const StepMessage decoded = decode_step(encode(step, part), RandomMessages::limits());
      EXPECT_TRUE(decoded.batch.waits_for_previous);
      expect_same_rows(step.batch, decoded.batch);
    }
    taken += static_cast<size_t>(
        std::ranges::count_if(step.batch.token_sources, [](int source) { return source >= 0; }));
  }
  EXPECT_GT(taken, 300u);
}

TEST(StepMessage, SharesWhatTheRowsShared) {
  Batch batch;
  const auto rules = std::make_shared<LogitRules>();
  const auto log = std::make_shared<TokenLog>(3);
  log->append(std::vector<TokenId>{1, 2, 3});
  for (int row = 0; row < 3; ++row) {
    batch.tokens.push_back(7);
    batch.positions.push_back(row);
    batch.logit_rows.push_back(row);
    batch.sampling.push_back({.rules = rules, .history = {.log = log, .known = row + 1}});
  }
  batch.cu_seqlens_q = {0, 3};
  batch.context_lens = {3};
  const StepMessage decoded = decode_step(encode(StepMessage{.batch = batch}), StepLimits{});
  const auto& sampling = decoded.batch.sampling;
  EXPECT_EQ(sampling[0].rules, sampling[2].rules);
  EXPECT_EQ(sampling[0].history.log, sampling[2].history.log);
  EXPECT_THAT(sampling[2].history.log->first(3), testing::ElementsAre(1, 2, 3));
}

TEST(StepMessage, RanksThatDrawNothingGetNoSampling) {
  RandomMessages random(2);
  StepMessage step = random.step();
  while (step.batch.sampling.empty()) step = random.step();
  const auto bytes = encode(step, StepPart::kLayers);
  EXPECT_LT(bytes.size(), encode(step).size());
  StepMasks masks;
  const StepMessage decoded = decode_step(bytes, RandomMessages::limits(), &masks);
  expect_same_rows(step.batch, decoded.batch);
  for (const auto& mask : masks) EXPECT_EQ(mask, nullptr);
  for (const auto& row : decoded.batch.sampling) EXPECT_EQ(row.rules, nullptr);
}

TEST(StepMessage, EveryTruncationIsRefused) {
  RandomMessages random(3);
  for (int i = 0; i < 20; ++i) {
    const auto bytes = encode(i % 2 == 0 ? random.step() : random.step_that_waits(1, 7));
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THROW(decode_step(std::span(bytes).first(size), RandomMessages::limits()), WireError);
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_THROW(decode_step(longer, RandomMessages::limits()), WireError);
  }
}

// One sequence of 3 rows at the positions 17 to 19, with two pages.
StepMessage step_of_one() {
  StepMessage step;
  Batch& batch = step.batch;
  batch.tokens = {1, 2, 3};
  batch.token_sources = {-1, -1, -1};
  batch.positions = {17, 18, 19};
  batch.cu_seqlens_q = {0, 3};
  batch.context_lens = {20};
  batch.block_tables = {{.columns = 2, .pages = {4, 5}}};
  batch.logit_rows = {2};
  batch.sampling.resize(1);
  return step;
}

StepLimits limits_of_one() {
  return {.rows = 3, .vocab = 4, .page_count = 6, .positions = 20, .groups = {{}}};
}

TEST(StepMessage, WhatIsOutsideTheLimitsIsRefused) {
  decode_step(encode(step_of_one()), limits_of_one());
  const auto refuse = [](const char* what, auto change) {
    StepMessage step = step_of_one();
    StepLimits limits = limits_of_one();
    change(step.batch, limits);
    EXPECT_THROW(decode_step(encode(step), limits), WireError) << what;
  };
  refuse("rows", [](Batch&, StepLimits& limits) { limits.rows = 2; });
  refuse("token", [](Batch& batch, StepLimits&) { batch.tokens[1] = 4; });
  refuse("negative token", [](Batch& batch, StepLimits&) { batch.tokens[1] = -1; });
  refuse("position", [](Batch&, StepLimits& limits) { limits.positions = 19; });
  refuse("page", [](Batch&, StepLimits& limits) { limits.page_count = 5; });
  refuse("no page", [](Batch& batch, StepLimits&) { batch.block_tables[0].pages[0] = kNoPage; });
  refuse("short table",
         [](Batch& batch, StepLimits&) { batch.block_tables[0] = {.columns = 1, .pages = {4}}; });
  refuse("no table", [](Batch& batch, StepLimits&) { batch.block_tables.clear(); });
  refuse("tables", [](Batch&, StepLimits& limits) { limits.block_tables = 0; });
  refuse("logit row", [](Batch& batch, StepLimits&) { batch.logit_rows[0] = 3; });
  refuse("draws", [](Batch& batch, StepLimits&) { batch.sampling.resize(2); });
  refuse("hidden row", [](Batch& batch, StepLimits&) { batch.hidden_rows = {-1}; });
  refuse("target", [](Batch& batch, StepLimits&) { batch.prompt_logprobs = {{0, 4, 1}}; });
  refuse("temperature", [](Batch& batch, StepLimits&) { batch.sampling[0].temperature = NAN; });
  refuse("logprobs", [](Batch& batch, StepLimits&) { batch.sampling[0].logprobs = 5; });
  refuse("prediction", [](Batch& batch, StepLimits& limits) {
    limits.predicts = false;
    batch.next_tokens = {1, 1, 1};
    batch.next_sources = {-1, -1, 0};
  });
  refuse("source", [](Batch& batch, StepLimits&) {
    batch.next_tokens = {1, 1, 1};
    batch.next_sources = {-1, -1, 1};
  });
}

TEST(StepMessage, SourcesOutsideTheLimitsAreRefused) {
  StepMessage step = step_of_one();
  step.number = 1;
  step.batch.waits_for_previous = true;
  step.batch.token_sources = {-1, 2, -1};
  step.batch.tokens[1] = 99;  // not read
  EXPECT_NO_THROW(decode_step(encode(step), limits_of_one()));
  for (const int32_t source : {-2, 3}) {
    step.batch.token_sources[1] = source;
    EXPECT_THROW(decode_step(encode(step), limits_of_one()), WireError) << source;
  }
  step.batch.token_sources[1] = -1;
  EXPECT_THROW(decode_step(encode(step), limits_of_one()), WireError);  // the token is read
  step.batch.tokens[1] = 2;
  EXPECT_NO_THROW(decode_step(encode(step), limits_of_one()));
  step.number = 0;
  EXPECT_THROW(decode_step(encode(step), limits_of_one()), WireError);
}

TEST(StepMessage, AWindowNeedsNoEarlierPages) {
  StepMessage step = step_of_one();
  StepLimits limits = limits_of_one();
  step.batch.block_tables[0].pages[0] = kNoPage;
  limits.groups[0].window = 3;
  EXPECT_THROW(decode_step(encode(step), limits), WireError);  // row 17 reads token 15
  limits.groups[0].window = 2;
  EXPECT_NO_THROW(decode_step(encode(step), limits));
}

TEST(MaskMessage, ComesBack) {
  RandomMessages random(4);
  for (int i = 0; i < 100; ++i) {
    const MaskMessage mask = random.mask();
    const MaskMessage decoded = decode_mask(encode(mask));
    EXPECT_EQ(decoded.number, mask.number);
    EXPECT_EQ(decoded.index, mask.index);
    EXPECT_EQ(decoded.failure, mask.failure);
    EXPECT_EQ(decoded.words, mask.words);
  }
}

}  // namespace
}  // namespace octavo
