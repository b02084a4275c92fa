#include "scheduler/mask_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "scheduler/testing/toy_constraint.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kEven = 0b0101010101;
constexpr uint32_t kOdd = 0b0010101010;  // without the stop token
constexpr TokenId kStopToken = 9;

std::shared_ptr<const Constraint> toy(ToyRules rules = {}) {
  rules.vocab = 10;
  rules.stop = kStopToken;
  if (rules.length == 0) rules.length = 3;
  return std::make_shared<ToyConstraint>(rules);
}

MaskSlots slots(size_t count) {
  MaskSlots made;
  for (size_t i = 0; i < count; ++i) made.push_back(std::make_shared<TokenMask>());
  return made;
}

TEST(MaskWorker, FillsMasksAfterAcceptedTokens) {
  MaskWorker worker(1);
  ConstrainedAnswer answer(worker, toy());
  const MaskSlots masks = slots(3);
  answer.fill({masks[0]});
  EXPECT_THAT(masks[0]->wait(), ElementsAre(kEven));
  answer.accept(4);
  answer.fill({masks[1]});
  EXPECT_THAT(masks[1]->wait(), ElementsAre(kOdd));
  answer.accept(1);
  answer.accept(2);
  answer.fill({masks[2]});
  EXPECT_THAT(masks[2]->wait(), ElementsAre(1u << kStopToken));
}

TEST(MaskWorker, DraftsAreTakenBack) {
  MaskWorker worker(1);
  ConstrainedAnswer answer(worker, toy());
  const MaskSlots drafted = slots(4);
  answer.fill(drafted, {2, 3, 3});  // the last one is not allowed
  const MaskSlots again = slots(1);
  answer.fill(again);
  EXPECT_THAT(drafted[0]->wait(), ElementsAre(kEven));
  EXPECT_THAT(drafted[1]->wait(), ElementsAre(kOdd));
  EXPECT_THAT(drafted[2]->wait(), ElementsAre(kEven));
  EXPECT_THAT(drafted[3]->wait(), IsEmpty());
  EXPECT_THAT(again[0]->wait(), ElementsAre(kEven));
}

TEST(MaskWorker, AFailureAppliesToAllLaterSlots) {
  MaskWorker worker(1);
  const auto failed = std::make_shared<std::atomic<int>>(0);
  ConstrainedAnswer answer(worker, toy({.fails_at = 1, .failed = failed}));
  const MaskSlots masks = slots(4);
  answer.fill({masks[0]});
  answer.accept(2);
  answer.fill({masks[1], masks[2]}, {3});
  answer.accept(3);
  answer.fill({masks[3]});
  EXPECT_EQ(masks[0]->failure(), "");
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(masks[i]->failure(), "the toy is broken");
    EXPECT_TRUE(masks[i]->allows_nothing());
  }
  EXPECT_EQ(*failed, 1);  // called once
  ConstrainedAnswer other(worker, toy());
  const MaskSlots wrong = slots(1);
  other.accept(3);
  other.fill(wrong);
  EXPECT_EQ(wrong[0]->failure(), "token 3 does not fit the grammar");
}

TEST(MaskWorker, AFailureAfterADraftDoesNotEndTheChoice) {
  MaskWorker worker(1);
  const auto failed = std::make_shared<std::atomic<int>>(0);
  ConstrainedAnswer answer(worker, toy({.fails_at = 2, .failed = failed}));
  const MaskSlots masks = slots(5);
  answer.fill({masks[0], masks[1], masks[2]}, {2, 3});
  answer.fill({masks[3]});
  answer.accept(2);
  answer.fill({masks[4]});
  EXPECT_EQ(masks[1]->failure(), "");
  EXPECT_EQ(masks[2]->failure(), "the toy is broken");
  EXPECT_TRUE(std::ranges::equal(masks[3]->wait(), masks[0]->wait()));
  EXPECT_TRUE(std::ranges::equal(masks[4]->wait(), masks[1]->wait()));
  EXPECT_EQ(*failed, 0);
}

TEST(MaskWorker, TheDestructorSetsEverySlot) {
  const MaskSlots masks = slots(64);
  {
    MaskWorker worker(3);
    for (const auto& mask : masks) ConstrainedAnswer(worker, toy()).fill({mask});
  }
  for (const auto& mask : masks) EXPECT_TRUE(mask->is_set());
}

TEST(MaskWorker, ManyChoicesOnManyThreadsKeepTheirOrder) {
  MaskWorker worker(3);
  std::vector<std::unique_ptr<ConstrainedAnswer>> answers;
  for (int i = 0; i < 32; ++i)
    answers.push_back(std::make_unique<ConstrainedAnswer>(worker, toy({.length = 200})));
  MaskSlots last;
  for (int step = 0; step < 100; ++step) {
    last = slots(answers.size());
    for (size_t i = 0; i < answers.size(); ++i) {
      answers[i]->fill({last[i]});
      answers[i]->accept(step % 2);
    }
  }
  for (const auto& mask : last) EXPECT_THAT(mask->wait(), ElementsAre(kOdd));
}

TEST(TokenMask, OnlyTheFirstCallCounts) {
  TokenMask mask;
  mask.set({1});
  mask.set({2});
  mask.fail("late");
  EXPECT_THAT(mask.wait(), ElementsAre(1u));
  EXPECT_FALSE(mask.allows_nothing());
  EXPECT_EQ(mask.failure(), "");
}

}  // namespace
}  // namespace octavo
