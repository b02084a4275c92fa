#include "kernels/sampling.h"

#include <gmock/gmock.h>

#include <numeric>
#include <thread>

#include "kernels/cpu/sampling.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/random_logits.h"
#include "kernels/testing/support.h"

namespace octavo {
namespace {

using testing::ElementsAre;

template <typename T>
std::vector<T> values_of(mx::array array) {
  array.eval();
  return {array.data<T>(), array.data<T>() + array.size()};
}

struct Rows {
  std::vector<float> logits;
  int vocab = 0;
  std::vector<RowSampling> sampling;

  int count() const { return static_cast<int>(sampling.size()); }
  mx::array all() const { return mx::array(logits.begin(), {count(), vocab}, mx::float32); }
  mx::array only(int row) const {
    return mx::array(logits.begin() + int64_t{row} * vocab, {1, vocab}, mx::float32);
  }
};

// Rows of every kind: greedy, drawn, with masks, rules, logprobs, hashes and pending tokens.
Rows mixed_rows(int count, int vocab, int previous) {
  std::mt19937 random(7);
  Rows rows{.logits = {}, .vocab = vocab, .sampling = {}};
  for (int i = 0; i < count; ++i) {
    const auto row = random_logits(random, static_cast<size_t>(vocab), random_shape(random));
    rows.logits.insert(rows.logits.end(), row.begin(), row.end());
    RowSampling s{.temperature = i % 3 == 0 ? 0 : 0.8f,
                  .top_p = i % 2 == 0 ? 1 : 0.9f,
                  .top_k = i % 5 == 0 ? 40 : 0,
                  .seed = 5,
                  .position = 100 + static_cast<uint32_t>(i),
                  .logprobs = i % 4 - 1,
                  .hash_logits = i % 2 == 0};
    if (i % 4 == 1) {
      auto log = std::make_shared<TokenLog>(50);
      for (int t = 0; t < 50; ++t) log->append(static_cast<TokenId>(random() % row.size()));
      s.rules = std::make_shared<LogitRules>(
          LogitRules{.repetition_penalty = 1.2f, .frequency_penalty = 0.5f});
      s.history = {.log = log, .prompt = 20, .known = 50, .pending = i % previous};
    }
    if (i % 3 == 1) {
      auto mask = std::make_shared<TokenMask>();
      std::vector<uint32_t> words(static_cast<size_t>(vocab + 31) / 32);
      for (uint32_t& word : words) word = random() & random();
      mask->set(std::move(words));
      s.mask = std::move(mask);
    }
    rows.sampling.push_back(s);
  }
  return rows;
}

std::shared_ptr<const TokenMask> mask_of(std::vector<TokenId> tokens, int vocab) {
  std::vector<uint32_t> words(static_cast<size_t>(vocab + 31) / 32);
  for (TokenId token : tokens) words[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
  auto mask = std::make_shared<TokenMask>();
  mask->set(std::move(words));
  return mask;
}

TEST(Sampling, ARowsResultsDoNotDependOnOtherRows) {
  for (cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    constexpr int kPrevious = 6;
    const Rows rows = mixed_rows(33, 3000, kPrevious);
    const mx::array previous = mx::array({10, 20, 30, 40, 50, 60});
    const Drawn together = sample(rows.all(), rows.sampling, previous);
    const auto tokens = values_of<int32_t>(together.tokens);
    const auto values = floats_of(together.logprobs->values);
    const auto ids = values_of<int32_t>(together.logprobs->ids);
    const auto ranks = values_of<int32_t>(together.logprobs->ranks);
    const auto hashes = values_of<uint64_t>(*together.hashes);
    constexpr size_t kColumns = 3;
    ASSERT_EQ(ids.size(), tokens.size() * kColumns);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const RowSampling& s = rows.sampling[i];
      const Drawn alone = sample(rows.only(static_cast<int>(i)), {s}, previous);
      EXPECT_EQ(values_of<int32_t>(alone.tokens)[0], tokens[i]);
      ASSERT_EQ(alone.logprobs.has_value(), s.logprobs >= 0);
      ASSERT_EQ(alone.hashes.has_value(), s.hash_logits);
      EXPECT_EQ(alone.hashes ? values_of<uint64_t>(*alone.hashes)[0] : 0, hashes[i]);
      const auto own = static_cast<size_t>(1 + s.logprobs);
      const auto first = static_cast<int64_t>(i * kColumns);
      if (alone.logprobs) {
        EXPECT_EQ(values_of<int32_t>(alone.logprobs->ids),
                  std::vector<int32_t>(ids.begin() + first, ids.begin() + first + s.logprobs + 1));
        const auto own_values = values.begin() + first;
        EXPECT_TRUE(same_bits(floats_of(alone.logprobs->values),
                              {own_values, own_values + s.logprobs + 1}));
        EXPECT_EQ(values_of<int32_t>(alone.logprobs->ranks)[0], ranks[i]);
        EXPECT_EQ(ids[i * kColumns], tokens[i]);
      } else {
        EXPECT_EQ(ranks[i], 0);
      }
      for (size_t column = own; column < kColumns; ++column)
        EXPECT_EQ(ids[i * kColumns + column], -1);
    }
  }
}

TEST(Sampling, NoTokenOutsideTheMaskIsDrawnWhateverTheRulesAllow) {
  constexpr int kVocab = 300;
  const float infinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(3);
  const auto banned_words = std::make_shared<LogitRules>(LogitRules{.bad_words = {{7}, {133}}});
  const auto elsewhere = std::make_shared<LogitRules>(LogitRules{.allowed = {1, 0, 0, 0, 0}});
  const auto biased = std::make_shared<LogitRules>(LogitRules{.logit_bias = {{20, 100}}});
  for (const auto& rules : {std::shared_ptr<LogitRules>(), banned_words, elsewhere, biased}) {
    for (const float temperature : {0.0f, 1.0f}) {
      for (const int top_k : {0, 1, 50}) {
        for (uint32_t position = 0; position < 20; ++position) {
          auto logits = random_logits(random, kVocab, random_shape(random));
          RowSampling row{.temperature = temperature, .top_k = top_k, .position = position};
          row.top_p = position % 2 == 0 ? 1 : 0.8f;
          row.rules = rules;
          row.mask = mask_of({7, 133}, kVocab);
          EXPECT_THAT(cpu::sample_row(logits, row), testing::AnyOf(7, 133));
          logits[7] = logits[133] = -infinity;
          EXPECT_THAT(cpu::sample_row(logits, row), testing::AnyOf(7, 133));
        }
      }
    }
  }
}

TEST(Sampling, AMaskThatIsAllOnesChangesNothing) {
  constexpr int kVocab = 1000;
  std::mt19937 random(5);
  std::vector<TokenId> all(kVocab);
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t position = 0; position < 30; ++position) {
    const auto logits = random_logits(random, kVocab, random_shape(random));
    RowSampling row{.temperature = 1, .top_p = 0.9f, .position = position};
    const int32_t expected = cpu::sample_row(logits, row);
    row.mask = mask_of(all, kVocab);
    EXPECT_EQ(cpu::sample_row(logits, row), expected);
  }
}

TEST(Sampling, TheDrawWaitsForItsMask) {
  const auto mask = std::make_shared<TokenMask>();
  const mx::array logits({1.0f, 2.0f, 3.0f}, {1, 3}, mx::float32);
  Drawn drawn = sample(logits, {{.mask = mask}});
  mx::async_eval(drawn.tokens);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(drawn.tokens.is_available());
  mask->set({0b010});
  EXPECT_THAT(values_of<int32_t>(drawn.tokens), ElementsAre(1));
}

TEST(Sampling, OutputsThatNoRowRequestsAreNotComputed) {
  const Drawn drawn = sample(mx::ones({2, 5}), std::vector<RowSampling>(2));
  EXPECT_FALSE(drawn.logprobs.has_value());
  EXPECT_FALSE(drawn.hashes.has_value());
  EXPECT_THAT(values_of<int32_t>(drawn.tokens), ElementsAre(0, 0));
}

TEST(Sampling, APendingTokenCountsAsPartOfTheOutput) {
  auto log = std::make_shared<TokenLog>(4);
  log->append(0);
  const RowSampling row{.rules = std::make_shared<LogitRules>(LogitRules{.presence_penalty = 10}),
                        .history = {.log = log, .prompt = 1, .known = 1, .pending = 1}};
  const mx::array logits = mx::array({1.0f, 2.0f, 3.0f, 4.0f}, {1, 4});
  const auto drawn_after = [&](int token) {
    // The pending token is the result of a step that has not run yet.
    mx::array step = mx::zeros({2, 4});
    step = mx::contiguous(mx::where(mx::arange(4) == mx::array(token), mx::array(1.0f), step));
    const Drawn before = sample(step, std::vector<RowSampling>(2));
    return values_of<int32_t>(sample(logits, {row}, before.tokens).tokens)[0];
  };
  EXPECT_EQ(drawn_after(0), 3);
  EXPECT_EQ(drawn_after(3), 2);
}

TEST(Sampling, LogprobsOfGivenTokensAreThoseOfDrawnOnes) {
  const Rows rows = mixed_rows(12, 800, 1);
  std::vector<RowSampling> greedy(12, RowSampling{.logprobs = 4});
  const Drawn drawn = sample(rows.all(), greedy);
  const auto tokens = values_of<int32_t>(drawn.tokens);
  const Logprobs given = logprobs_of(rows.all(), tokens, 4);
  EXPECT_TRUE(same_bits(floats_of(given.values), floats_of(drawn.logprobs->values)));
  EXPECT_EQ(values_of<int32_t>(given.ids), values_of<int32_t>(drawn.logprobs->ids));
  EXPECT_EQ(values_of<int32_t>(given.ranks), std::vector<int32_t>(12, 1));
  EXPECT_EQ(logprobs_of(rows.all(), tokens, 0).values.shape(), (mx::Shape{12, 1}));
}

TEST(Sampling, HashesAreOfTheBitsAndTheSameOnEveryInstructionSet) {
  std::mt19937 random(3);
  auto logits = random_logits(random, 1001, LogitShape::kHoled);
  const auto hash = [&] {
    const mx::array row(logits.begin(), {1, 1001}, mx::float32);
    return values_of<uint64_t>(*sample(row, {{.hash_logits = true}}).hashes)[0];
  };
  const uint64_t first = hash();
  for (cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    EXPECT_EQ(hash(), first);
  }
  for (size_t at : {0u, 500u, 1000u}) {
    uint32_t bits = 0;
    std::memcpy(&bits, &logits[at], 4);
    bits ^= 1;
    std::memcpy(&logits[at], &bits, 4);
    EXPECT_NE(hash(), first);
    bits ^= 1;
    std::memcpy(&logits[at], &bits, 4);
  }
  EXPECT_EQ(hash(), first);
}

TEST(Sampling, PlaceTokensTakesTheKnownOrThePreviousStepsToken) {
  const mx::array placed =
      place_tokens(mx::array({1, 2, 3, 4}), mx::array({-1, 2, -1, 0}), mx::array({70, 71, 72}));
  EXPECT_THAT(values_of<int32_t>(placed), ElementsAre(1, 72, 3, 70));
}

TEST(Sampling, EveryOperationRunsOurKernel) {
  auto before = launch_counts();
  sample(mx::ones({1, 4}), std::vector<RowSampling>(1)).tokens.eval();
  logprobs_of(mx::ones({1, 4}), std::vector<TokenId>{0}, 1).values.eval();
  place_tokens(mx::array({1}), mx::array({-1}), mx::array({1})).eval();
  auto after = launch_counts();
  for (const char* key : {"sample.cpu", "logprobs_of.cpu", "place_tokens.cpu"})
    EXPECT_EQ(after[key], before[key] + 1) << key;
}

}  // namespace
}  // namespace octavo
