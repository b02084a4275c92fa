#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

PromptImage image_at(int offset, const std::string& name, int height, int width) {
  return {.identifier = name,
          .offset = offset,
          .grid_h = height,
          .grid_w = width,
          .pixels = fake_pixels(name)};
}

class ImagesTest : public SchedulerFixture {
 protected:
  void make_images(ImageOptions images, SchedulerOptions options, int pages = 64) {
    images.enabled = true;
    images.pieces = [this](const PromptImage&) { return pieces_; };
    options.images = images;
    make(options, pages);
    runner_->images().pieces = pieces_;
  }
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[update.request];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.cached_tokens) cached_[update.request] = *update.cached_tokens;
      if (!update.error.empty()) errors_[update.request] = update.error;
    }
  }
  RequestId ask(std::vector<PromptImage> images, int prompt = 24, int max_tokens = 3) {
    return add({.prompt = numbers(0, prompt),
                .images = std::move(images),
                .max_tokens = max_tokens,
                .ignore_eos = true});
  }
  void expect_right_answers() {
    for (const auto& [id, answer] : answers_) {
      if (errors_.contains(id)) continue;
      const Request& request = requests_[id];
      std::vector<TokenId> tokens = request.prompt;
      for (int i = 0; i < request.max_tokens; ++i)
        tokens.push_back(model_->next_token(
            tokens, {.position = static_cast<uint32_t>(tokens.size())}, nullptr, request.images));
      const auto prompt = static_cast<std::ptrdiff_t>(request.prompt.size());
      EXPECT_EQ(answer, std::vector<TokenId>(tokens.begin() + prompt, tokens.end())) << id;
    }
  }

  int pieces_ = 3;
  std::map<RequestId, std::vector<TokenId>> answers_;
  std::map<RequestId, int> cached_;
  std::map<RequestId, std::string> errors_;
};

const SchedulerOptions kSmall = {
    .max_num_seqs = 4, .max_num_batched_tokens = 16, .max_model_len = 64};

TEST_F(ImagesTest, RowsWaitForTheirImage) {
  make_images({.max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  ask({image_at(5, "a", 2, 4)});
  Batch batch = start();
  EXPECT_EQ(batch.rows(), 5);  // up to the image, whose first piece is in the same step
  EXPECT_NE(batch.image_work.encodes, 0u);
  batch = start();
  EXPECT_EQ(batch.rows(), 0);
  finish();
  batch = start();  // the last piece, and the rows that take it
  EXPECT_EQ(batch.rows(), 16);
  ASSERT_EQ(batch.image_rows.size(), 1u);
  EXPECT_EQ(batch.image_rows[0],
            (ImageRows{.row = 0, .image = batch.image_work.encodes, .first = 0, .count = 8}));
  run_all();
  expect_right_answers();
}

TEST_F(ImagesTest, AnotherImageOrAnotherPlaceIsNoPrefixHit) {
  make_images({.max_image_tokens = 8, .kept_tokens = 32}, kSmall);
  const std::vector<std::vector<PromptImage>> prompts = {{image_at(4, "a", 2, 4)},
                                                         {image_at(4, "b", 2, 4)},
                                                         {image_at(5, "a", 2, 4)},
                                                         {},
                                                         {image_at(4, "a", 2, 4)}};
  std::vector<RequestId> ids;
  for (const auto& images : prompts) {
    ids.push_back(ask(images));
    run_all();
  }
  for (size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(cached_[ids[i]], 0) << i;
  EXPECT_EQ(cached_[ids.back()], 16);  // whole blocks before the last token
  EXPECT_EQ(scheduler_->stats().images_encoded, 2u);
  EXPECT_EQ(scheduler_->stats().image_queries,
            3u);  // the last request takes all from the prefix cache
  EXPECT_EQ(scheduler_->stats().image_hits, 1u);
  expect_right_answers();
}

TEST_F(ImagesTest, AnImageWhoseRowsSeeOneAnotherIsNotDivided) {
  make_images({.sees_block = true, .max_image_tokens = 12, .kept_tokens = 12}, kSmall);
  ask({image_at(10, "a", 3, 4)});
  ask({image_at(2, "a", 3, 4)});
  while (!scheduler_->idle()) {
    if (scheduler_->steps_in_flight() < 2) {
      if (const auto batch = scheduler_->next()) {
        for (const ImageRows& part : batch->image_rows) {
          EXPECT_EQ(part.count, 12);
          const auto first = batch->last_visible.begin() + part.row;
          EXPECT_THAT(std::vector<int>(first, first + 12),
                      Each(batch->positions[static_cast<size_t>(part.row)] + 11));
        }
        runner_->start(*batch);
      }
    }
    if (!runner_->in_flight().empty()) finish();
  }
  expect_right_answers();
}

TEST_F(ImagesTest, ABackgroundImageRunsInOneStepBesideOthers) {
  make_images({.sees_block = true, .max_image_tokens = 12, .kept_tokens = 12}, kSmall);
  Request background{.prompt = numbers(0, 24), .images = {image_at(0, "a", 3, 4)}, .max_tokens = 3};
  background.ignore_eos = background.background = true;
  add(background);
  start();
  finish();
  const RequestId other = ask({}, 4, 50);
  int steps_with_image = 0;
  while (!scheduler_->idle()) {
    const bool beside = answers_[other].size() < 50;
    const Batch batch = start();
    for (const ImageRows& part : batch.image_rows) {
      EXPECT_TRUE(beside);
      EXPECT_EQ(part.count, 12);
      ++steps_with_image;
    }
    finish();
  }
  EXPECT_EQ(steps_with_image, 1);
  expect_right_answers();
}

TEST_F(ImagesTest, ABackgroundImageIsEncodedAgainAfterAFailedStep) {
  for (int before = 0; before < 16; ++before) {
    make_images({.sees_block = true, .max_image_tokens = 12, .kept_tokens = 12}, kSmall);
    ask({}, 4, 40);
    Request background{
        .prompt = numbers(0, 24), .images = {image_at(0, "a", 3, 4)}, .max_tokens = 3};
    background.ignore_eos = background.background = true;
    add(background);
    for (int steps = 0; !scheduler_->idle(); ++steps) {
      ASSERT_LT(steps, 1000);
      if (steps == before) runner_->fail_starts = 1;
      const auto batch = scheduler_->next();
      ASSERT_TRUE(batch.has_value()) << before;
      runner_->start(*batch);
      finish();
    }
    expect_right_answers();
    answers_.clear();
  }
}

TEST_F(ImagesTest, ChoicesOfARequestShareItsImage) {
  make_images({.max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  Request request{.prompt = numbers(0, 24), .images = {image_at(5, "a", 2, 4)}, .n = 3};
  request.max_tokens = 1;
  request.ignore_eos = true;
  add(std::move(request));
  run_all();
  // The first choice computes the prompt; the others, the rows after the last whole block.
  EXPECT_EQ(scheduler_->stats().prompt_tokens, 24u + 2 * 8);
}

TEST_F(ImagesTest, LinesOfAnImageMayEndWithAToken) {
  pieces_ = 1;
  make_images({.max_image_tokens = 6, .kept_tokens = 6}, kSmall);
  PromptImage image = image_at(1, "a", 2, 3);
  image.row_breaks = true;
  ask({image}, 12);
  start();
  EXPECT_EQ(image.end(), 9);
  const ImageId id = scheduler_->steps_in_flight() == 1 ? 1 : 0;
  finish();
  const Batch batch = start();
  EXPECT_THAT(batch.image_rows,
              ElementsAre(ImageRows{.row = 0, .image = id, .first = 0, .count = 3},
                          ImageRows{.row = 4, .image = id, .first = 3, .count = 3}));
  run_all();
  expect_right_answers();
}

TEST_F(ImagesTest, PositionsOnThreeAxesFollowTheImageIntoTheAnswer) {
  pieces_ = 1;
  make_images({.three_axes = true, .max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  ask({image_at(0, "a", 2, 4)}, 10);
  Batch batch = start();
  while (batch.rows() == 0) {
    finish();
    batch = start();
  }
  ASSERT_EQ(batch.rows(), 10);
  EXPECT_THAT(std::vector<int>(batch.rope_positions.begin(), batch.rope_positions.begin() + 10),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 4, 5));
  EXPECT_THAT(
      std::vector<int>(batch.rope_positions.begin() + 10, batch.rope_positions.begin() + 20),
      ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 4, 5));
  EXPECT_THAT(std::vector<int>(batch.rope_positions.begin() + 20, batch.rope_positions.end()),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5));
  finish();
  batch = start();
  EXPECT_THAT(batch.rope_positions, ElementsAre(6, 6, 6));
  run_all();
  ask({}, 4);
  EXPECT_THAT(start().rope_positions, IsEmpty());
  run_all();
  expect_right_answers();
}

TEST_F(ImagesTest, ThePromptMayEndWithAnImage) {
  make_images({.max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  ask({image_at(15, "a", 1, 2)}, 17);  // the image's last row is the first of a chunk
  run_all();
  ask({image_at(0, "b", 1, 1)}, 1);
  run_all();
  expect_right_answers();
}

TEST_F(ImagesTest, AnEncodingThatFailsTwiceEndsTheRequestThatNeedsIt) {
  make_images({.max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  const RequestId bad = ask({image_at(0, "a", 2, 4)});
  while (!scheduler_->idle()) {
    if (scheduler_->steps_in_flight() < 2) {
      if (const auto batch = scheduler_->next()) {
        runner_->fail_starts = 1;
        runner_->start(*batch);
      }
    }
    if (!runner_->in_flight().empty()) finish();
  }
  EXPECT_FALSE(errors_[bad].empty());
  runner_->fail_starts = 0;
  const RequestId good = ask({image_at(0, "a", 2, 4)});
  run_all();
  EXPECT_FALSE(errors_.contains(good));
  expect_right_answers();
}

TEST_F(ImagesTest, TheImageOfAnAbortedRequestMakesRoomForAnother) {
  make_images({.max_image_tokens = 8, .kept_tokens = 8}, kSmall);
  const RequestId first = ask({image_at(0, "a", 2, 4)});
  start();
  scheduler_->abort(first);
  finish();
  requests_.erase(first);
  ask({image_at(0, "b", 2, 4)});
  run_all();
  EXPECT_EQ(scheduler_->stats().images_encoded, 1u);
  expect_right_answers();
}

TEST(ImageRequests, AreValidated) {
  const RequestLimits limits = {.max_model_len = 100, .vocab = kFakeVocab, .max_image_tokens = 8};
  const auto check = [&](std::vector<PromptImage> images, RequestLimits of) {
    validate({.prompt = numbers(0, 24), .images = std::move(images)}, of);
  };
  EXPECT_NO_THROW(check({image_at(0, "a", 2, 4), image_at(8, "a", 2, 4)}, limits));
  EXPECT_THROW(check({image_at(0, "a", 3, 3)}, limits), RequestError);   // too many tokens
  EXPECT_THROW(check({image_at(17, "a", 2, 4)}, limits), RequestError);  // past the prompt
  EXPECT_THROW(check({image_at(0, "a", 2, 4), image_at(7, "b", 2, 4)}, limits), RequestError);
  EXPECT_THROW(check({image_at(0, "a", 0, 4)}, limits), RequestError);
  EXPECT_THROW(check({image_at(0, "", 1, 4)}, limits), RequestError);
  RequestLimits none = limits;
  none.max_image_tokens = 0;
  EXPECT_THROW(check({image_at(0, "a", 2, 4)}, none), RequestError);
}

}  // namespace
}  // namespace octavo
