// Drafts change the timing of tokens but never the output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "scheduler/testing/scheduler_fixture.h"
#include "scheduler/testing/toy_constraint.h"

namespace octavo {
namespace {

using testing::ElementsAre;

const SoftmaxSpec kFull{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
const StateSpec kState{.heads = 2, .k_dim = 8, .v_dim = 8, .conv_rows = 3, .conv_channels = 24};

struct Answer {
  std::vector<TokenId> tokens = {};
  std::vector<TokenId> logprobs = {};
  std::vector<uint64_t> hashes = {};
  std::vector<int> prompt_logprobs = {};
  std::optional<FinishReason> finish = {};
  std::optional<TokenId> stop_token = {};
  std::string error = {};

  bool operator==(const Answer&) const = default;
};

class SpeculationTest : public SchedulerFixture {
 protected:
  using Answers = std::map<std::pair<RequestId, int>, Answer>;

  void make_speculating(SchedulerOptions options, int pages, std::optional<int> right_percent,
                        int window = 0, bool state = false) {
    options.speculation = {.most_drafts = 5, .most_rows = options.max_num_batched_tokens};
    SoftmaxSpec spec = kFull;
    spec.window = window;
    std::vector<CacheSpec> layers = {kFull};
    if (window > 0) layers.push_back(spec);
    if (state) layers.push_back(kState);
    make_of(layers, options, pages, right_percent);
    answers_.clear();
    next_id_ = 1;
  }

  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      Answer& answer = answers_[{update.request, update.choice}];
      answer.tokens.insert(answer.tokens.end(), update.tokens.begin(), update.tokens.end());
      answer.hashes.insert(answer.hashes.end(), update.hashes.begin(), update.hashes.end());
      for (const auto& entry : update.logprobs) answer.logprobs.push_back(entry.token);
      for (const auto& entry : update.prompt_logprobs) answer.prompt_logprobs.push_back(entry.rank);
      if (update.finish) answer.finish = update.finish;
      if (!update.error.empty()) answer.error = update.error;
      if (update.stop_token) answer.stop_token = update.stop_token;
    }
  }

  Request random_request(std::mt19937& random) {
    const auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Request request{.prompt = numbers(draw(0, 6), draw(1, 40)), .max_tokens = draw(1, 60)};
    request.n = draw(1, 6) == 1 ? 3 : 1;
    if (draw(0, 1) == 1) request.sampling.temperature = 0.8F;
    request.sampling.seed = random();
    if (draw(0, 3) == 0) request.sampling.repetition_penalty = 1.5F;
    if (draw(0, 3) == 0) request.min_tokens = draw(0, request.max_tokens);
    if (draw(0, 2) == 0) request.stop_token_ids = {draw(0, kFakeVocab - 1), draw(0, 9)};
    if (draw(0, 3) == 0) request.sampling.logprobs = 0;
    if (draw(0, 3) == 0) request.sampling.prompt_logprobs = 0;
    request.hash_logits = draw(0, 3) == 0;
    if (draw(0, 3) == 0) {
      request.constraint =
          std::make_shared<ToyConstraint>(ToyRules{.vocab = kFakeVocab,
                                                   .stop = 7,
                                                   .length = draw(1, 50),
                                                   .fails_at = draw(0, 3) == 0 ? draw(1, 40) : -1,
                                                   .closed = draw(0, 1) == 1});
    }
    return request;
  }

  Answers answers_;
};

TEST_F(SpeculationTest, RightDraftsTakeOneStepAndNothingIsQueuedAfterIt) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 100}, 64, 100);
  add({.prompt = numbers(0, 5), .max_tokens = 40});
  run_all();
  const SchedulerStats stats = scheduler_->stats();
  EXPECT_EQ((answers_[{1, 0}].tokens.size()), 40u);
  EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
  EXPECT_GT(stats.drafts, 5u);
  EXPECT_LT(stats.steps, 25u);
}

// The state after the last right draft continues the sequence; the others' pages are released.
TEST_F(SpeculationTest, AStateContinuesAfterTheRightDrafts) {
  for (const int right : {0, 60, 100}) {
    make_speculating({.max_num_batched_tokens = 64, .max_model_len = 100}, 64, right, 0, true);
    add({.prompt = numbers(0, 5), .max_tokens = 40});
    const int copy = plan_.state_pages();
    while (!scheduler_->idle()) {
      const Batch batch = start();
      const auto pages = static_cast<int>(batch.block_tables.back().pages.size());
      if (batch.rows() == static_cast<int>(batch.sampling.size())) {
        EXPECT_EQ(pages, (1 + batch.rows()) * copy);
      }
      finish();
      const int held = plan_.groups[0].pages_for(100) + 2 * copy;
      EXPECT_LE(pool_->referenced_pages(), held);
    }
    EXPECT_EQ((answers_[{1, 0}].tokens.size()), 40u);
    EXPECT_GT(scheduler_->stats().drafts, 0u);
    EXPECT_EQ(pool_->referenced_pages(), 0);
  }
}

// The pool holds one sequence with its drafts, and snapshots of the output are found again.
TEST_F(SpeculationTest, SnapshotsAreTakenAmongRightDrafts) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 200}, 200, 100, 0, true);
  add({.prompt = numbers(0, 5), .max_tokens = 60});
  run_all();
  ASSERT_GT(scheduler_->stats().accepted_tokens, 30u);
  std::vector<TokenId> next_turn = numbers(0, 5);
  const auto& answer = answers_[{1, 0}].tokens;
  next_turn.insert(next_turn.end(), answer.begin(), answer.end());
  add({.prompt = next_turn, .max_tokens = 1});
  run_all();
  EXPECT_GE(scheduler_->stats().prefix_hits, 56u);
}

TEST_F(SpeculationTest, AStepWithDraftsDrawsAfterEachOfThem) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 100}, 64, 100);
  add({.prompt = numbers(0, 5), .sampling = {.repetition_penalty = 2}, .max_tokens = 40});
  start();
  finish();
  Batch batch = start();
  while (batch.rows() == 1) {
    finish();
    batch = start();
  }
  ASSERT_EQ(batch.sampling.size(), static_cast<size_t>(batch.rows()));
  for (int i = 0; i < batch.rows(); ++i) {
    const RowSampling& row = batch.sampling[static_cast<size_t>(i)];
    EXPECT_EQ(row.position, static_cast<uint32_t>(batch.positions[static_cast<size_t>(i)] + 1));
    EXPECT_EQ(row.history.assumed_count, i);
  }
  EXPECT_FALSE(scheduler_->next().has_value());
  run_all();
}

TEST_F(SpeculationTest, DraftsDoNotExceedTheContext) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 16}, 2, 100);
  add({.prompt = numbers(0, 5), .max_tokens = 100});
  run_all();
  EXPECT_EQ((answers_[{1, 0}].tokens.size()), 11u);
  EXPECT_EQ((answers_[{1, 0}].finish), FinishReason::kLength);
}

TEST_F(SpeculationTest, SequencesWhoseDraftsFailStopDrafting) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 600}, 128, 0);
  add({.prompt = numbers(0, 5), .max_tokens = 500});
  run_all();
  EXPECT_LT(scheduler_->stats().drafts, 20u);
}

TEST_F(SpeculationTest, DraftsThatDoNotPayOffAreNotMade) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 400}, 128, 100);
  for (int rows = 1; rows <= 40; ++rows) scheduler_->costs().observe_step(rows, 0.001 * rows);
  for (int i = 0; i < 8; ++i) add({.prompt = numbers(i, 5), .max_tokens = 200});
  run_all();
  EXPECT_LT(scheduler_->stats().drafts, 40u);
}

TEST_F(SpeculationTest, OutputIsTheSameAsWithoutDrafts) {
  std::mt19937 random(5);
  uint64_t drafts = 0;
  uint64_t preemptions = 0;
  for (int round = 0; round < 80; ++round) {
    const bool tight = round % 3 == 0;
    const bool state = round % 4 > 1;
    const int window = round % 2 == 0 ? 12 : 0;
    SchedulerOptions options{.max_num_seqs = 1 + round % 9,
                             .max_num_batched_tokens = 6 + round % 40,
                             .max_model_len = 100,
                             .stop_token_ids = {7}};
    const int pages = (tight ? 27 : 200) + (state ? 20 : 0);
    std::vector<Request> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(random_request(random));
    Answers expected;
    for (const std::optional<int> right :
         {std::optional<int>(), std::optional(0), std::optional(70), std::optional(100)}) {
      make_speculating(options, pages, right, window, state);
      for (const Request& request : requests) add(request);
      // A step of the speculating run fails.
      if (round % 5 == 0) {
        start();
        finish();
        if (right) runner_->fail_starts = 1;
      }
      run_all();
      ASSERT_EQ(pool_->referenced_pages(), 0);
      drafts += scheduler_->stats().drafts;
      preemptions += right ? scheduler_->stats().preemptions : 0;
      if (!right) {
        expected = answers_;
      } else {
        ASSERT_EQ(answers_, expected) << "round " << round << ", right " << *right;
      }
    }
  }
  EXPECT_GT(drafts, 2000u);
  EXPECT_GT(preemptions, 10u);
}

// The prediction that comes with a token is the draft after it, also when the token was a draft.
TEST_F(SpeculationTest, TheModelsOwnPredictionsAreDrafts) {
  std::mt19937 random(3);
  for (const bool state : {false, true}) {
    std::vector<Request> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(random_request(random));
    requests.push_back({.prompt = numbers(0, 30), .max_tokens = 60});
    Answers expected;
    for (const bool predicts : {false, true}) {
      SchedulerOptions options{.max_num_batched_tokens = 12,
                               .max_model_len = 100,
                               .stop_token_ids = {7},
                               .predicts = predicts};
      make_speculating(options, 90, std::nullopt, 0, state);
      for (const Request& request : requests) add(request);
      run_all();
      if (!predicts) expected = answers_;
    }
    EXPECT_EQ(answers_, expected);
    EXPECT_GT(scheduler_->stats().accepted_tokens, 50u);
    make_speculating({.max_num_batched_tokens = 12, .max_model_len = 100, .predicts = true}, 60,
                     std::nullopt, 0, state);
    add({.prompt = numbers(0, 30), .sampling = {.temperature = 1}, .max_tokens = 50});
    run_all();
    EXPECT_EQ(scheduler_->stats().accepted_tokens, scheduler_->stats().draft_tokens);
    EXPECT_GT(scheduler_->stats().accepted_tokens, 20u);
  }
}

TEST_F(SpeculationTest, AnAbortWithDraftsInFlightReleasesThePages) {
  make_speculating({.max_num_batched_tokens = 64, .max_model_len = 100}, 64, 100);
  const RequestId id = add({.prompt = numbers(0, 5), .max_tokens = 40});
  start();
  finish();
  while (start().rows() == 1) finish();
  take(scheduler_->abort(id));
  EXPECT_GT(pool_->referenced_pages(), 0);
  finish();
  EXPECT_EQ(pool_->referenced_pages(), 0);
  EXPECT_TRUE(scheduler_->idle());
}

}  // namespace
}  // namespace octavo
