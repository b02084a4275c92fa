#include "cache/sequence_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace octavo {
namespace {

using Tokens = std::vector<TokenId>;

Tokens numbers(int first, int count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

CachePlan one_group() {
  return plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
}

// Blocks of 8; a full group and one with a window of 16.
CachePlan full_and_window() {
  const SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
  SoftmaxSpec window = full;
  window.window = 16;
  return plan_cache(std::vector<CacheSpec>{full, window}, 8);
}

struct Fixture {
  explicit Fixture(CachePlan plan_in, int pages = 64, int hash_bits = 64)
      : plan(std::move(plan_in)), pool(pages), shared(plan, pool, hash_bits) {}

  // Runs a sequence to its end, so that its pages are cached.
  void remember(const Tokens& tokens, SequenceKeys keys = {}) {
    SequenceCache sequence(shared, std::move(keys));
    ASSERT_TRUE(sequence.grow_to(static_cast<int>(tokens.size())));
    sequence.publish(tokens);
  }
  int hit(const Tokens& tokens, int limit, SequenceKeys keys = {}) {
    return SequenceCache(shared, std::move(keys)).reuse(tokens, limit);
  }

  CachePlan plan;
  PagePool pool;
  PrefixCache shared;
};

TEST(SequenceCache, FindsWholeBlocksUpToTheLimit) {
  Fixture f(one_group());
  f.remember(numbers(0, 30));
  EXPECT_EQ(f.hit(numbers(0, 40), 39), 24);
  EXPECT_EQ(f.hit(numbers(0, 24), 23), 16);  // one token must be left to run
  EXPECT_EQ(f.hit(numbers(1, 24), 23), 0);
  EXPECT_EQ(f.pool.cached_pages(), 3);
}

TEST(SequenceCache, SharesThePagesThemselves) {
  Fixture f(one_group());
  SequenceCache first(f.shared, {});
  ASSERT_TRUE(first.grow_to(20));
  first.publish(numbers(0, 20));
  SequenceCache second(f.shared, {});
  ASSERT_EQ(second.reuse(numbers(0, 20), 19), 16);
  ASSERT_TRUE(second.grow_to(20));
  EXPECT_EQ(second.pages().table(0)[1], first.pages().table(0)[1]);
  EXPECT_NE(second.pages().table(0)[2], first.pages().table(0)[2]);  // a tail is never shared
  EXPECT_EQ(f.pool.references(first.pages().table(0)[0]), 2);
}

TEST(SequenceCache, KeysKeepEqualTokensApart) {
  Fixture f(one_group());
  f.remember(numbers(0, 30), {.first_block = {salt_key("tenant a")}});
  EXPECT_EQ(f.hit(numbers(0, 30), 29), 0);
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.first_block = {salt_key("tenant b")}}), 0);
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.every_block = {salt_key("tenant a")}}), 8);
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.first_block = {salt_key("tenant a")}}), 24);
}

TEST(SequenceCache, KeysOfImagesAreThoseOfVllm) {
  Fixture f(one_group());
  SequenceCache sequence(f.shared, {.every_block = {adapter_key("lora")},
                                    .first_block = {salt_key("salt")},
                                    .images = {{"a", 5, 14}, {"b", 19, 5}}});
  ASSERT_TRUE(sequence.grow_to(32));
  sequence.publish(numbers(0, 32));
  const auto extra = [&](size_t block) {
    return f.shared.index().extra(f.shared.index().node_of(sequence.pages().table(0)[block]));
  };
  EXPECT_EQ(extra(0), (ExtraKeys{adapter_key("lora"), image_key("a", 5), salt_key("salt")}));
  EXPECT_EQ(extra(1), (ExtraKeys{adapter_key("lora"), image_key("a", -3)}));
  EXPECT_EQ(extra(2), (ExtraKeys{adapter_key("lora"), image_key("a", -11), image_key("b", 3)}));
  EXPECT_EQ(extra(3), (ExtraKeys{adapter_key("lora")}));
}

TEST(SequenceCache, NamespacesKeepEqualHashesApart) {
  Fixture f(one_group());
  CacheNamespace a = {};
  CacheNamespace b = {};
  a[0] = b[31] = 1;
  f.remember(numbers(0, 30), {.space = a});
  EXPECT_EQ(f.hit(numbers(0, 30), 29), 0);
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.space = b}), 0);
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.space = a}), 24);
  f.remember(numbers(0, 30), {.space = b});  // the first does not stand in its way
  EXPECT_EQ(f.hit(numbers(0, 30), 29, {.space = b}), 24);
  EXPECT_EQ(f.hit(numbers(0, 30), 29), 0);
  EXPECT_EQ(f.pool.cached_pages(), 6);
}

// With one bit of hash nearly every lookup collides; the tokens decide.
TEST(SequenceCache, ACollisionIsNotAHit) {
  Fixture f(one_group(), 4096, 1);
  for (int i = 0; i < 50; ++i) f.remember(numbers(100 * i, 40));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(f.hit(numbers(100 * i, 40), 39), 32);
    Tokens mixed = numbers(100 * i, 40);
    mixed[8 + i % 8] = 7;
    EXPECT_EQ(f.hit(mixed, 39), 8);
  }
}

TEST(SequenceCache, TheEndOfASequenceIsEvictedFirst) {
  Fixture f(one_group(), 4);
  f.remember(numbers(0, 32));
  auto lease = f.pool.try_lease(2);
  EXPECT_EQ(f.hit(numbers(0, 32), 31), 16);
}

TEST(SequenceCache, AWindowNeedsOnlyItsLastPages) {
  Fixture f(full_and_window());
  SequenceCache first(f.shared, {});
  ASSERT_TRUE(first.grow_to(48));
  first.publish(numbers(0, 48));
  first.release_behind(48);                               // pages of 0..31 leave the window group
  auto all = f.pool.try_lease(f.pool.available_pages());  // and are leased again
  SequenceCache second(f.shared, {});
  EXPECT_EQ(second.reuse(numbers(0, 60), 59), 48);
  EXPECT_EQ(second.pages().table(1)[3], kNoPage);
  EXPECT_NE(second.pages().table(1)[4], kNoPage);
  SequenceCache third(f.shared, {});
  EXPECT_EQ(third.reuse(numbers(0, 60), 40), 0);  // the window's pages before 40 are gone
}

TEST(SequenceCache, RetractedPagesAreNotFound) {
  Fixture f(one_group());
  {
    SequenceCache sequence(f.shared, {});
    ASSERT_TRUE(sequence.grow_to(30));
    sequence.publish(numbers(0, 30));
    sequence.retract(9);
    sequence.release();
  }
  EXPECT_EQ(f.hit(numbers(0, 30), 29), 8);
  EXPECT_EQ(f.pool.cached_pages(), 1);
}

TEST(SequenceCache, ClearLeavesNothing) {
  Fixture f(one_group());
  f.remember(numbers(0, 30));
  SequenceCache running(f.shared, {});
  ASSERT_TRUE(running.grow_to(16));
  running.publish(numbers(50, 16));
  f.shared.index().clear();
  EXPECT_EQ(f.pool.cached_pages(), 0);
  EXPECT_EQ(f.hit(numbers(0, 30), 29), 0);
  running.release();
  EXPECT_EQ(f.pool.free_pages(), 64);
  EXPECT_EQ(f.shared.index().nodes(), 1);
}

// Blocks of 8 and a state of two pages; a snapshot every 16 tokens.
CachePlan with_state() {
  const SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
  return plan_cache(std::vector<CacheSpec>{full, StateSpec{.heads = 2, .k_dim = 8, .v_dim = 8}}, 8);
}

struct StateFixture : Fixture {
  explicit StateFixture(int pages = 64) : Fixture(with_state(), pages) {}

  // Adds the missing rows of `tokens`, in parts that end at snapshots.
  void run(SequenceCache& sequence, const Tokens& tokens, int start,
           const std::vector<int>& edges = {}) {
    for (const auto count = static_cast<int>(tokens.size()); start < count;) {
      const int rows = sequence.rows_before_snapshot(start, count - start, edges);
      ASSERT_TRUE(sequence.grow_to(start + rows));
      sequence.advance(start, start + rows, edges);
      start += rows;
      sequence.publish(std::span(tokens).first(static_cast<size_t>(start)));
      sequence.release_behind(start);
    }
  }
};

TEST(SequenceCacheState, IsHitAtSnapshotsOnly) {
  StateFixture f;
  ASSERT_EQ(f.shared.snapshot_tokens(), 16);
  {
    SequenceCache sequence(f.shared, {});
    f.run(sequence, numbers(0, 45), 0, {24});
  }
  EXPECT_EQ(f.shared.index().snapshots(), 3);  // 16, 24, 32
  EXPECT_EQ(f.hit(numbers(0, 45), 44), 32);
  EXPECT_EQ(f.hit(numbers(0, 31), 30), 24);
  EXPECT_EQ(f.hit(numbers(0, 23), 22), 16);
  EXPECT_EQ(f.hit(numbers(0, 15), 14), 0);
}

TEST(SequenceCacheState, AHitReadsTheSnapshotAndWritesElsewhere) {
  StateFixture f;
  SequenceCache first(f.shared, {});
  f.run(first, numbers(0, 20), 0);
  SequenceCache second(f.shared, {});
  ASSERT_EQ(second.reuse(numbers(0, 30), 29), 16);
  ASSERT_TRUE(second.grow_to(30));
  const auto table = second.pages().state().table();
  const auto snapshot = f.shared.index().snapshot(f.shared.index().node_of(table[0]));
  EXPECT_TRUE(std::equal(snapshot.begin(), snapshot.end(), table.begin()));
  EXPECT_EQ(std::find(snapshot.begin(), snapshot.end(), table[2]), snapshot.end());
}

TEST(SequenceCacheState, EvictingAPageDropsItsSnapshot) {
  StateFixture f(16);
  {
    SequenceCache sequence(f.shared, {});
    f.run(sequence, numbers(0, 20), 0);
  }
  ASSERT_EQ(f.shared.index().snapshots(), 1);
  const int cached = f.pool.cached_pages();
  ASSERT_GT(cached, 2);
  const auto lease = f.pool.try_lease(f.pool.free_pages() + 1);  // evicts one page
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(f.shared.index().snapshots(), 0);
  EXPECT_EQ(f.hit(numbers(0, 20), 19), 0);
  EXPECT_EQ(f.pool.referenced_pages() + f.pool.cached_pages() + f.pool.free_pages(), 16);
}

TEST(SequenceCacheState, SnapshotsTakeHalfOfThePoolAtMost) {
  StateFixture f(24);
  EXPECT_EQ(f.shared.most_snapshots(), 6);
  for (int i = 0; i < 12; ++i) {
    SequenceCache sequence(f.shared, {});
    f.run(sequence, numbers(100 * i, 17), 0);
    EXPECT_LE(f.shared.index().snapshots(), 6);
  }
  EXPECT_EQ(f.hit(numbers(1100, 17), 16), 16);
}

TEST(SequenceCacheState, IsNotKeptWhenThePoolIsShort) {
  StateFixture f(7);
  SequenceCache sequence(f.shared, {});
  f.run(sequence, numbers(0, 20), 0);
  EXPECT_EQ(f.shared.index().snapshots(), 0);
}

TEST(SequenceCacheState, ARetractedSnapshotIsNotFound) {
  StateFixture f;
  SequenceCache sequence(f.shared, {});
  const Tokens tokens = numbers(0, 20);
  f.run(sequence, numbers(0, 16), 0);
  ASSERT_EQ(f.shared.index().snapshots(), 1);
  sequence.retract(0);
  EXPECT_EQ(f.shared.index().snapshots(), 0);
  EXPECT_EQ(f.hit(tokens, 19), 0);
}

}  // namespace
}  // namespace octavo
