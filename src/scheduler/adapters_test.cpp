#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scheduler/adapter_slots.h"
#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::shared_ptr<const Adapter> adapter(int id, const std::string& name, int content) {
  Sha256Digest digest = {};
  digest[0] = static_cast<uint8_t>(content);
  return std::make_shared<const Adapter>(static_cast<uint64_t>(id), name, digest);
}

TEST(AdapterSlots, ReplaceTheLeastRecentlyUsedThatIsNotLeased) {
  AdapterSlots slots(2);
  const auto a = adapter(1, "a", 1), b = adapter(2, "b", 2), c = adapter(3, "c", 3);
  slots.try_lease(a);
  auto lease_b = slots.try_lease(b);
  slots.try_lease(a);
  EXPECT_EQ(slots.take_loads().size(), 2u);
  const auto lease_c = slots.try_lease(c);
  EXPECT_EQ(lease_c->slot(), 0);  // b is older, but leased
  EXPECT_FALSE(slots.has_place_for(*a));
  EXPECT_FALSE(slots.try_lease(a).has_value());
  lease_b.reset();
  EXPECT_EQ(slots.try_lease(a)->slot(), 1);
  const auto loads = slots.take_loads();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].adapter, c);
  EXPECT_EQ(loads[1].adapter, a);
}

class AdaptersTest : public SchedulerFixture {
 protected:
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[update.request];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.cached_tokens) cached_[update.request] = *update.cached_tokens;
      if (update.finish) end_order_.push_back(update.request);
    }
  }
  void expect_right_answers() {
    for (const auto& [id, answer] : answers_) {
      const Request& request = requests_[id];
      std::vector<TokenId> tokens = request.prompt;
      for (int i = 0; i < request.max_tokens; ++i)
        tokens.push_back(model_->next_token(
            tokens, {.position = static_cast<uint32_t>(tokens.size())}, request.adapter.get()));
      const auto prompt = static_cast<std::ptrdiff_t>(request.prompt.size());
      EXPECT_EQ(answer, std::vector<TokenId>(tokens.begin() + prompt, tokens.end())) << id;
    }
  }

  std::map<RequestId, std::vector<TokenId>> answers_;
  std::map<RequestId, int> cached_;
  std::vector<RequestId> end_order_;
};

TEST_F(AdaptersTest, RowsNameTheirSlotsAndOthersHaveNone) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 2}, 64);
  add({.prompt = numbers(0, 2), .max_tokens = 2});
  EXPECT_THAT(start().adapter_slots, IsEmpty());
  add({.prompt = numbers(0, 2), .max_tokens = 2, .adapter = adapter(7, "a", 1)});
  add({.prompt = numbers(0, 1), .max_tokens = 2, .adapter = adapter(8, "b", 2)});
  const Batch batch = start();
  EXPECT_THAT(batch.adapter_slots, ElementsAre(-1, 0, 0, 1));
  EXPECT_EQ(batch.adapter_loads.size(), 2u);
  run_all();
  expect_right_answers();
}

TEST_F(AdaptersTest, ASequenceWithoutASlotWaitsWhileBaseSequencesPass) {
  const auto a = adapter(1, "a", 1), b = adapter(2, "b", 2);
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 1},
       64);
  const RequestId first = add({.prompt = numbers(0, 3), .max_tokens = 10, .adapter = a});
  const RequestId waits = add({.prompt = numbers(0, 3), .max_tokens = 2, .adapter = b});
  const RequestId base = add({.prompt = numbers(0, 3), .max_tokens = 2});
  EXPECT_THAT(start().adapter_slots, ElementsAre(0, 0, 0, -1, -1, -1));
  EXPECT_THAT(scheduler_->adapter_use().waiting, ElementsAre("b"));
  EXPECT_THAT(scheduler_->adapter_use().running, ElementsAre("a"));
  run_all();
  EXPECT_THAT(end_order_, ElementsAre(base, first, waits));
}

TEST_F(AdaptersTest, AWaitingAdapterIsPassedALimitedNumberOfTimes) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 1},
       64);
  const auto a = adapter(1, "a", 1), b = adapter(2, "b", 2);
  add({.prompt = numbers(0, 3), .max_tokens = 3, .adapter = a});
  const RequestId waits = add({.prompt = numbers(0, 3), .max_tokens = 4, .adapter = b});
  for (int i = 0; i < 20; ++i) add({.prompt = numbers(i, 3), .max_tokens = 5, .adapter = a});
  run_all();
  const auto place = std::ranges::find(end_order_, waits) - end_order_.begin();
  EXPECT_EQ(place, 3);  // after the first and max_num_seqs others
  expect_right_answers();
}

TEST_F(AdaptersTest, BackgroundRequestsGiveUpTheirSlotsToOthers) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 1},
       64);
  const auto a = adapter(1, "a", 1), b = adapter(2, "b", 2);
  const RequestId batch =
      add({.prompt = numbers(0, 3), .max_tokens = 40, .background = true, .adapter = a});
  for (int i = 0; i < 4; ++i) {
    start();
    finish();
  }
  const RequestId chat = add({.prompt = numbers(0, 3), .max_tokens = 4, .adapter = b});
  run_all();
  EXPECT_THAT(end_order_, ElementsAre(chat, batch));
  expect_right_answers();
}

TEST_F(AdaptersTest, NameAndContentSeparateCachedPrefixes) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 1}, 64);
  const auto ask = [&](std::shared_ptr<const Adapter> of) {
    const RequestId id = add({.prompt = numbers(0, 30), .max_tokens = 2, .adapter = std::move(of)});
    run_all();
    return cached_[id];
  };
  const auto a = adapter(1, "a", 1);
  EXPECT_EQ(ask(nullptr), 0);
  EXPECT_EQ(ask(a), 0);
  EXPECT_EQ(ask(a), 24);
  EXPECT_EQ(ask(adapter(2, "a", 2)), 0);   // reloaded with other content
  EXPECT_EQ(ask(adapter(3, "a", 1)), 24);  // reloaded unchanged
  EXPECT_EQ(ask(adapter(4, "b", 1)), 0);
  EXPECT_EQ(ask(nullptr), 24);
  expect_right_answers();
}

TEST_F(AdaptersTest, FailedStepsRunAloneWithOneSlotForAllOfThem) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 64, .max_model_len = 100, .adapter_slots = 2},
       64);
  for (int i = 0; i < 4; ++i)
    add({.prompt = numbers(i, 5), .max_tokens = 6, .adapter = adapter(i + 1, "x", i)});
  runner_->fail_starts = 1;
  run_all();
  EXPECT_EQ(end_order_.size(), 4u);
  expect_right_answers();
}

}  // namespace
}  // namespace octavo
