// The scheduler with a disk tier: which pages are saved, and which prove those of a peer.
#include <gtest/gtest.h>

#include "cache/disk_pages_fixture.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_runner.h"
#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

class SavedPagesTest : public testing::Test {
 protected:
  explicit SavedPagesTest(int stages = 1)
      : scheduler_({.max_num_batched_tokens = 64,
                    .max_model_len = 100,
                    .vocab = kFakeVocab,
                    .pipeline_stages = stages},
                   prefixes_, &disk_) {}

  void start() { runner_.start(*scheduler_.next()); }
  void finish() { scheduler_.commit(runner_.finish()); }
  uint64_t saved() {
    EXPECT_TRUE(tier_.flush(10s));
    return tier_.stats().written;
  }

  TemporaryFolder folder_;
  CachePlan plan_ =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
  PagePool pool_{64};
  PrefixCache prefixes_{plan_, pool_};
  FakeModel model_{plan_, kFakeVocab};
  FakeRunner runner_{model_, 64};
  DiskTier tier_{{.store = {.folder = folder_.path(),
                            .fingerprint = "fake",
                            .page_bytes = runner_.bytes_per_page(),
                            .most_bytes = 1 << 20}}};
  PrefixDisk disk_{prefixes_, tier_, runner_};
  Scheduler scheduler_;
};

// The second request shares pages that the first one writes in the same step.
TEST_F(SavedPagesTest, AnAbortSavesNoPageThatAStepInFlightWrites) {
  scheduler_.add(1, {.prompt = numbers(0, 40), .max_tokens = 2});
  scheduler_.add(2, {.prompt = numbers(0, 40), .max_tokens = 2});
  start();
  EXPECT_EQ(runner_.in_flight().front().sequences(), 2);
  scheduler_.abort(2);
  EXPECT_EQ(saved(), 0u);
  finish();
  EXPECT_EQ(saved(), 5u);
  start();
  finish();
  EXPECT_TRUE(scheduler_.idle());
}

// A page of a peer, with other bytes than those computed here.
class ReceivedPagesTest : public SavedPagesTest {
 protected:
  ReceivedPagesTest() {
    tier_.receive(page_, std::nullopt,
                  [](std::span<std::byte> to) { std::ranges::fill(to, std::byte{1}); });
    EXPECT_TRUE(tier_.flush(10s));
    EXPECT_TRUE(tier_.wants_proof({&page_, 1}));  // so that the next request reads it
  }

  void step() {
    while (scheduler_.waits_for_disk() || scheduler_.steps_in_flight() == 0) {
      if (auto batch = scheduler_.next()) runner_.start(*batch);
    }
    finish();
  }
  void run_all() {
    while (!scheduler_.idle()) step();
    EXPECT_TRUE(tier_.flush(10s));
  }

  PageKey page_{.block = hash_block(none_hash(), numbers(0, 8), {})};
};

TEST_F(ReceivedPagesTest, APageThatWasReadDoesNotProveItself) {
  for (RequestId id : {1, 2}) {
    scheduler_.add(id, {.prompt = numbers(0, 20), .max_tokens = 2});
    run_all();
  }
  EXPECT_EQ(scheduler_.stats().disk.restored_tokens, 8u);
  EXPECT_EQ(tier_.stats().proven, 0u);
  EXPECT_EQ(tier_.stats().refuted, 0u);
  EXPECT_FALSE(tier_.are_common({&page_, 1}));
}

TEST_F(ReceivedPagesTest, PagesComputedFromAWrongOneAreNotSharedLater) {
  scheduler_.add(1, {.prompt = numbers(0, 20), .max_tokens = 40, .ignore_eos = true});
  step();
  EXPECT_TRUE(tier_.flush(10s));
  tier_.prove(page_, [](std::span<std::byte> to) { std::ranges::fill(to, std::byte{2}); });
  EXPECT_TRUE(tier_.flush(10s));
  EXPECT_EQ(tier_.stats().refuted, 1u);
  run_all();
  EXPECT_EQ(pool_.cached_pages(), 0);
  EXPECT_EQ(tier_.stats().pages, 0u);
  scheduler_.add(2, {.prompt = numbers(0, 20), .max_tokens = 2});  // pages of others are shared
  run_all();
  EXPECT_EQ(pool_.cached_pages(), 2);
  EXPECT_EQ(tier_.stats().pages, 2u);
}

class SavedPagesStagesTest : public SavedPagesTest {
 protected:
  SavedPagesStagesTest() : SavedPagesTest(4) {}
};

TEST_F(SavedPagesStagesTest, PagesAreSavedWhenTheirStepIsComplete) {
  scheduler_.add(1, {.prompt = numbers(0, 80), .max_tokens = 2});
  for (int i = 0; i < 4; ++i) start();
  EXPECT_EQ(saved(), 0u);
  for (uint64_t i = 1; i <= 4; ++i) {
    finish();
    EXPECT_EQ(saved(), 2 * i);
  }
  start();
  scheduler_.abort(1);
  EXPECT_EQ(saved(), 8u);
  finish();
  EXPECT_EQ(saved(), 10u);
  EXPECT_TRUE(scheduler_.idle());
}

}  // namespace
}  // namespace octavo
