#include "cache/prefix_observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "cache/cache_mirror.h"
#include "cache/sequence_cache.h"

namespace octavo {
namespace {

const SoftmaxSpec kFull{.kv_heads = 1, .k_dim = 8, .v_dim = 8};

SoftmaxSpec window_spec() {
  SoftmaxSpec spec = kFull;
  spec.window = 16;
  return spec;
}

// Twice as wide, so that its pages hold half as many tokens.
SoftmaxSpec wide_spec() {
  SoftmaxSpec spec = kFull;
  spec.kv_heads = 2;
  return spec;
}

StateSpec small_state() { return {.heads = 1, .k_dim = 4, .v_dim = 4}; }

// Blocks the index has, read from it directly.
std::set<CacheMirror::Block> indexed(PrefixCache& prefixes) {
  std::set<CacheMirror::Block> blocks;
  const PrefixIndex& index = prefixes.index();
  const auto groups = static_cast<int>(prefixes.plan().groups.size());
  for (PageId page = 0; page < prefixes.pool().page_count(); ++page) {
    const NodeId node = index.node_of(page);
    if (node == kNoNode) continue;
    const int group = index.group_of(page) < 0 ? groups : index.group_of(page);
    blocks.insert({group, index.describe(node, group).hash});
  }
  return blocks;
}

// Random sequences that share beginnings, several at a time, in a pool that holds a few of them.
class RandomSequences {
 public:
  RandomSequences(CachePlan plan, uint32_t seed)
      : plan_(std::move(plan)), pool_(96), prefixes_(plan_, pool_), random_(seed) {
    prefixes_.observe(mirror_);
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const int choice = draw(20);
      if (choice == 0 && i % 7 == 0) {
        prefixes_.index().clear();
      } else if (choice == 1 && !open_.empty()) {
        open_.back()->cache.retract(draw(static_cast<int>(open_.back()->tokens.size())));
        open_.pop_back();
      } else if (choice < 9 && open_.size() < 4) {
        begin();
      } else if (!open_.empty()) {
        open_.erase(open_.begin() + draw(static_cast<int>(open_.size())));
      }
      ASSERT_EQ(mirror_.blocks(CacheMedium::kMemory), indexed(prefixes_)) << "operation " << i;
    }
    EXPECT_GT(evictions_, 0);
  }

  // An indexer that drops what follows a removed block finds all that the index finds.
  void check_reach() {
    for (const auto& [group, hash] : mirror_.blocks(CacheMedium::kMemory)) {
      if (group >= static_cast<int>(plan_.groups.size())) continue;
      EXPECT_EQ(mirror_.reaches(group, hash), in_index(group, hash));
    }
  }

 private:
  struct Open {
    explicit Open(PrefixCache& prefixes) : cache(prefixes, {}) {}
    SequenceCache cache;
    std::vector<TokenId> tokens;
  };

  int draw(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }

  void begin() {
    auto open = std::make_unique<Open>(prefixes_);
    std::vector<TokenId>& tokens = open->tokens;
    for (int part = 0; part < 1 + draw(4); ++part) {
      const TokenId first = 1000 * part + 100 * draw(3);
      for (TokenId token = first; token < first + 24; ++token) tokens.push_back(token);
    }
    const auto count = static_cast<int>(tokens.size());
    const int hit = open->cache.reuse(tokens, count - 1);
    const size_t before = mirror_.blocks(CacheMedium::kMemory).size();
    if (!open->cache.grow_to(count)) return;
    if (mirror_.blocks(CacheMedium::kMemory).size() < before) ++evictions_;
    open->cache.advance(hit, count, {});
    open->cache.publish(tokens);
    open->cache.release_behind(count);
    open_.push_back(std::move(open));
  }

  // Whether the block and all before it have pages.
  bool in_index(int group, uint64_t hash) {
    const PrefixIndex& index = prefixes_.index();
    for (PageId page = 0; page < pool_.page_count(); ++page) {
      NodeId node = index.node_of(page);
      if (node == kNoNode || index.group_of(page) != group ||
          index.describe(node, group).hash != hash)
        continue;
      const int step =
          plan_.groups[static_cast<size_t>(group)].block_tokens / prefixes_.hash_block_tokens();
      while (node != kRootNode) {
        if (index.page(node, group) == kNoPage) return false;
        for (int i = 0; i < step; ++i) node = index.parent(node);
      }
      return true;
    }
    return false;
  }

  CacheMirror mirror_;
  CachePlan plan_;
  PagePool pool_;
  PrefixCache prefixes_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Open>> open_;
  int evictions_ = 0;
};

void mirror_equals_index(const std::vector<CacheSpec>& specs) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    RandomSequences sequences(plan_cache(specs, 8), seed);
    sequences.run(800);
    sequences.check_reach();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PrefixObserver, MirrorsFullAttention) { mirror_equals_index({kFull}); }
TEST(PrefixObserver, MirrorsWindows) { mirror_equals_index({kFull, window_spec()}); }
TEST(PrefixObserver, MirrorsPagesOfDifferentLengths) { mirror_equals_index({kFull, wide_spec()}); }
TEST(PrefixObserver, MirrorsSnapshots) { mirror_equals_index({kFull, small_state()}); }

TEST(PrefixObserver, DescribesTokensParentAndKeys) {
  const CachePlan plan = plan_cache(std::vector<CacheSpec>{kFull}, 8);
  PagePool pool(8);
  PrefixCache prefixes(plan, pool);
  CacheMirror mirror;
  prefixes.observe(mirror);
  SequenceCache sequence(prefixes,
                         {.every_block = {adapter_key("sql")}, .first_block = {salt_key("x")}});
  std::vector<TokenId> tokens(16);
  std::iota(tokens.begin(), tokens.end(), 1);
  ASSERT_TRUE(sequence.grow_to(16));
  sequence.publish(tokens);
  const NodeId last = prefixes.index().node_of(sequence.pages().table(0)[1]);
  const CachedBlock second = prefixes.index().describe(last, 0);
  const CachedBlock first = prefixes.index().describe(prefixes.index().parent(last), 0);
  const ExtraKeys keys = {adapter_key("sql"), salt_key("x")};
  const BlockHash hash = hash_block(none_hash(), std::span(tokens).first(8), keys);
  EXPECT_EQ(first.hash, short_hash(hash));
  EXPECT_EQ(first.parent, std::nullopt);
  EXPECT_EQ(first.extra, keys);
  EXPECT_EQ(second.parent, first.hash);
  EXPECT_EQ(second.hash,
            short_hash(hash_block(hash, std::span(tokens).last(8), {adapter_key("sql")})));
  EXPECT_EQ(second.tokens, std::vector<TokenId>(tokens.begin() + 8, tokens.end()));
}

}  // namespace
}  // namespace octavo
