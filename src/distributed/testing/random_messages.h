// random_messages.h - valid messages with random content, for tests. No MLX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "distributed/cluster_messages.h"
#include "distributed/step_message.h"
#include "distributed/worker_hello.h"

namespace octavo {

class RandomMessages {
 public:
  explicit RandomMessages(uint32_t seed) : random_(seed) {}

  static StepLimits limits() {
    return {.rows = 256,
            .vocab = 1000,
            .page_count = 64,
            .positions = 4096,
            .block_tables = 3,
            .groups = {{.block_tokens = 16}, {.block_tokens = 8, .window = 24}}};
  }

  uint32_t word() { return static_cast<uint32_t>(random_()); }
  int below(int count) { return static_cast<int>(word() % static_cast<uint32_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  float real() { return static_cast<float>(below(1'000'000)) / 1e6F; }

  StepMessage step(uint64_t number = 0) {
    StepMessage message{.number = number};
    Batch& batch = message.batch;
    const int sequences = below(6);
    for (int s = 0; s < sequences; ++s) add_sequence(batch);
    for (const auto& group : limits().groups) add_table(batch, group);
    if (chance(50)) add_state(batch);
    add_wanted(batch);
    return message;
  }

  // Takes some of its tokens from the previous step, which draws `drawn`.
  StepMessage step_that_waits(uint64_t number, int drawn) {
    StepMessage message = step(number);
    Batch& batch = message.batch;
    batch.waits_for_previous = true;
    for (size_t row = 0; row < batch.tokens.size() && drawn > 0; ++row) {
      if (!chance(30)) continue;
      batch.token_sources[row] = below(drawn);
      batch.tokens[row] = static_cast<TokenId>(word());  // ignored
    }
    return message;
  }

  // A result of such a step.
  ResultMessage result(const StepMessage& step) {
    ResultMessage message{.number = step.number};
    if (chance(10)) {
      message.error = text();
      return message;
    }
    const Batch& batch = step.batch;
    StepResult& result = message.result;
    const bool logprobs = chance(50) || std::ranges::any_of(batch.sampling, [](const auto& row) {
                            return row.logprobs >= 0;
                          });
    const bool hashes =
        chance(50) || std::ranges::any_of(batch.sampling, &RowSampling::hash_logits);
    for (size_t i = 0; i < batch.sampling.size(); ++i) {
      result.tokens.push_back(token());
      if (logprobs) result.logprobs.push_back(token_logprobs());
      if (hashes) result.hashes.push_back(wide());
      if (!batch.next_tokens.empty()) result.predicted.push_back(token());
    }
    for (size_t i = 0; i < batch.prompt_logprobs.size(); ++i)
      result.prompt_logprobs.push_back(token_logprobs());
    result.hidden.width = 5;
    for (size_t i = 0; i < 5 * batch.hidden_rows.size(); ++i)
      result.hidden.values.push_back(real());
    return message;
  }

  MaskMessage mask() {
    MaskMessage message{.number = wide(), .index = static_cast<uint32_t>(below(100))};
    if (chance(20)) {
      message.failure = text();
    } else {
      for (int i = below(40); i > 0; --i) message.words.push_back(word());
    }
    return message;
  }

  WorkerHello hello() {
    return {.rank = below(8),
            .version = text(),
            .arithmetic = below(9),
            .isa = text(),
            .memory_bytes = wide(),
            .model_digest = text(),
            .address = "10.0.0.2:41234"};
  }

  Welcome welcome() {
    Welcome welcome{.size = 2 + below(4), .session = text()};
    welcome.rank = 1 + below(welcome.size - 1);
    for (int i = 0; i < welcome.size; ++i) welcome.addresses.push_back(text());
    return welcome;
  }

  std::string text() {
    std::string text;
    for (int i = below(20); i > 0; --i) text += static_cast<char>('a' + below(26));
    return text;
  }
  uint64_t wide() { return uint64_t{word()} << 32 | word(); }

 private:
  TokenId token() { return below(limits().vocab); }
  std::vector<TokenId> tokens(int most) {
    std::vector<TokenId> tokens;
    for (int i = below(most + 1); i > 0; --i) tokens.push_back(token());
    return tokens;
  }

  void add_sequence(Batch& batch) {
    const int rows = 1 + below(8);
    const int start = chance(30) ? 0 : below(100);
    for (int i = 0; i < rows; ++i) {
      batch.tokens.push_back(token());
      batch.token_sources.push_back(-1);
      batch.positions.push_back(start + i);
    }
    batch.cu_seqlens_q.push_back(batch.rows());
    batch.context_lens.push_back(start + rows);
  }

  // Pages of a window's earlier tokens have been released.
  void add_table(Batch& batch, const StepLimits::Group& group) {
    BlockTable table;
    for (const int context : batch.context_lens)
      table.columns = std::max(table.columns, (context - 1) / group.block_tokens + 1);
    table.columns += below(2);
    for (size_t s = 0; s < batch.context_lens.size(); ++s) {
      const int context = batch.context_lens[s];
      const int row = context - (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]);
      const int first = group.window > 0 ? std::max(0, row - group.window + 1) : 0;
      for (int c = 0; c < table.columns; ++c) {
        const bool used =
            c >= first / group.block_tokens && c <= (context - 1) / group.block_tokens;
        table.pages.push_back(used ? below(limits().page_count) : kNoPage);
      }
    }
    batch.block_tables.push_back(std::move(table));
  }

  void add_state(Batch& batch) {
    BlockTable table{.columns = 2 + below(3)};
    for (size_t i = 0; i < batch.context_lens.size() * static_cast<size_t>(table.columns); ++i)
      table.pages.push_back(below(limits().page_count + 1) - 1);
    batch.block_tables.push_back(std::move(table));
  }

  void add_wanted(Batch& batch) {
    const auto rules = random_rules();
    const auto log = std::make_shared<TokenLog>(200);
    log->append(tokens(150));
    for (int row = 0; row < batch.rows(); ++row) {
      if (chance(40)) {
        batch.logit_rows.push_back(row);
        batch.sampling.push_back(row_sampling(rules, log));
      }
      if (chance(10)) batch.prompt_logprobs.push_back({row, token(), below(20)});
      if (chance(10)) batch.hidden_rows.push_back(row);
    }
    if (batch.rows() == 0 || chance(50)) return;
    for (int row = 0; row < batch.rows(); ++row) {
      batch.next_tokens.push_back(token());
      batch.next_sources.push_back(below(static_cast<int>(batch.sampling.size()) + 1) - 1);
    }
  }

  std::shared_ptr<const LogitRules> random_rules() {
    auto rules = std::make_shared<LogitRules>();
    rules->repetition_penalty = 1 + real();
    rules->presence_penalty = real() - 0.5F;
    rules->frequency_penalty = real() - 0.5F;
    for (int i = below(4); i > 0; --i) rules->logit_bias.emplace_back(token(), real() * 100 - 50);
    for (int i = below(4); i > 0; --i) rules->bad_words.push_back(tokens(4));
    for (int i = below(4); i > 0; --i) rules->allowed.push_back(word());
    rules->min_tokens = below(10);
    rules->held_back = tokens(3);
    return rules;
  }

  RowSampling row_sampling(const std::shared_ptr<const LogitRules>& shared,
                           const std::shared_ptr<const TokenLog>& log) {
    RowSampling row{.temperature = real(),
                    .top_p = real(),
                    .min_p = real(),
                    .top_k = below(100),
                    .seed = wide(),
                    .choice = word(),
                    .position = word(),
                    .logprobs = below(20) - 1,
                    .hash_logits = chance(50)};
    if (chance(30)) row.mask = std::make_shared<TokenMask>();
    if (chance(40)) return row;
    row.rules = chance(60) ? shared : random_rules();
    row.history.log = log;
    row.history.known = below(log->size() + 1);
    row.history.prompt = below(row.history.known + 1);
    if (chance(50)) {
      row.history.assumed = std::make_shared<const std::vector<TokenId>>(tokens(4));
      row.history.assumed_count = below(static_cast<int>(row.history.assumed->size()) + 1);
    }
    return row;
  }

  TokenLogprobs token_logprobs() {
    TokenLogprobs logprobs{.token = token(), .logprob = -real(), .rank = 1 + below(100)};
    for (int i = below(5); i > 0; --i) logprobs.top.emplace_back(token(), -real());
    return logprobs;
  }

  std::mt19937 random_;
};

}  // namespace octavo
