#include "cache/prefix_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cache/cache_mirror.h"
#include "cache/disk_pages_fixture.h"
#include "cache/sequence_cache.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMemoryPageBytes = 64;

class PlainPages : public PageMemory {
 public:
  explicit PlainPages(int pages) : bytes_(static_cast<size_t>(pages) * kMemoryPageBytes) {}
  size_t bytes_per_page() const override { return kMemoryPageBytes; }
  void copy_out(PageId page, std::span<std::byte> to) const override {
    std::ranges::copy(std::span(bytes_).subspan(offset(page), kMemoryPageBytes), to.begin());
  }
  void copy_in(PageId page, std::span<const std::byte> from) override {
    std::ranges::copy(from, bytes_.begin() + static_cast<std::ptrdiff_t>(offset(page)));
  }

 private:
  static size_t offset(PageId page) { return static_cast<size_t>(page) * kMemoryPageBytes; }
  std::vector<std::byte> bytes_;
};

// Blocks of 8 tokens.
class PrefixDiskTest : public testing::Test {
 protected:
  // Computes the sequence, writes its pages to disk and forgets those in memory.
  void keep_on_disk(const std::vector<TokenId>& tokens, const CacheNamespace& space) {
    SequenceCache sequence(prefixes_, {.space = space});
    const auto count = static_cast<int>(tokens.size());
    ASSERT_TRUE(sequence.grow_to(count));
    sequence.publish(tokens);
    sequence.save(count, /*ended=*/true, disk_);
    ASSERT_TRUE(tier_.flush(10s));
    sequence.release();
    prefixes_.index().clear();
  }
  std::unique_ptr<DiskTier> observed_tier(PrefixObserver& observer, uint64_t bytes) {
    return std::make_unique<DiskTier>(
        DiskTierOptions{.store = {.folder = folder_.path() / "observed",
                                  .fingerprint = "model",
                                  .page_bytes = kMemoryPageBytes,
                                  .most_bytes = bytes},
                        .observer = &observer});
  }
  // Tokens found after a restore.
  int restored(const std::vector<TokenId>& tokens, const CacheNamespace& space) {
    SequenceCache sequence(prefixes_, {.space = space});
    const auto limit = static_cast<int>(tokens.size()) - 1;
    const auto restore = sequence.restore(tokens, limit, disk_);
    if (!restore) return 0;
    while (!restore->done()) disk_.take_arrivals();
    return sequence.reuse(tokens, limit);
  }

  TemporaryFolder folder_;
  CachePlan plan_ =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
  PagePool pool_{64};
  PrefixCache prefixes_{plan_, pool_};
  PlainPages memory_{64};
  DiskTier tier_{{.store = {.folder = folder_.path(),
                            .fingerprint = "model",
                            .page_bytes = kMemoryPageBytes,
                            .most_bytes = 1 << 20}}};
  PrefixDisk disk_{prefixes_, tier_, memory_};
};

std::vector<TokenId> counted(int count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST_F(PrefixDiskTest, ReportsWhatIsOnDiskOnce) {
  CacheMirror mirror;
  const auto tier = observed_tier(mirror, 1 << 20);
  PrefixCache prefixes(plan_, pool_);
  prefixes.observe(mirror);
  PrefixDisk disk(prefixes, *tier, memory_);
  for (int round = 0; round < 2; ++round) {
    SequenceCache sequence(prefixes, {});
    ASSERT_TRUE(sequence.grow_to(30));
    sequence.publish(counted(30));
    sequence.save(30, /*ended=*/true, disk);
    ASSERT_TRUE(tier->flush(10s));
    EXPECT_EQ(mirror.blocks(CacheMedium::kDisk).size(), 3u);
  }
  EXPECT_EQ(mirror.stored_count(CacheMedium::kDisk), 3);
  EXPECT_EQ(mirror.blocks(CacheMedium::kDisk), mirror.blocks(CacheMedium::kMemory));
  disk.clear();
  prefixes.index().clear();
  EXPECT_TRUE(mirror.blocks(CacheMedium::kDisk).empty());
}

TEST_F(PrefixDiskTest, ReportsEvictionsFromDisk) {
  CacheMirror mirror;
  const auto tier = observed_tier(mirror, 64 << 10);
  PrefixCache prefixes(plan_, pool_);
  prefixes.observe(mirror);
  PrefixDisk disk(prefixes, *tier, memory_);
  for (TokenId first = 0; first < 400; ++first) {
    std::vector<TokenId> tokens = counted(24);
    tokens[0] = first;
    SequenceCache sequence(prefixes, {});
    ASSERT_TRUE(sequence.grow_to(24));
    sequence.publish(tokens);
    sequence.save(24, /*ended=*/true, disk);
  }
  ASSERT_TRUE(tier->flush(10s));
  const DiskStats stats = tier->stats();
  EXPECT_GT(stats.evicted, 0u);
  EXPECT_EQ(mirror.blocks(CacheMedium::kDisk).size(), stats.pages);
}

TEST_F(PrefixDiskTest, ANamespaceFindsOnlyItsOwnPages) {
  CacheNamespace a = {};
  CacheNamespace b = {};
  a[0] = b[0] = 7;
  b[1] = 1;
  keep_on_disk(counted(20), a);
  EXPECT_EQ(restored(counted(20), b), 0);
  EXPECT_EQ(restored(counted(20), {}), 0);
  EXPECT_EQ(restored(counted(20), a), 16);
}

TEST_F(PrefixDiskTest, TheCommonNamespaceIsKeyedByTheBlockHash) {
  keep_on_disk(counted(20), {});
  const std::vector<TokenId> tokens = counted(8);
  const PageKey key{hash_block(none_hash(), tokens, {}), 0};
  EXPECT_TRUE(tier_.has({&key, 1}).front());
  EXPECT_EQ(restored(counted(20), {}), 16);
}

}  // namespace
}  // namespace octavo
