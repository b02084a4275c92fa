#include <gtest/gtest.h>

#include <algorithm>

#include "cache/disk_pages_fixture.h"
#include "cache/disk_tier.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPeerPageBytes = 5000;

class DiskTierPeersTest : public testing::Test {
 protected:
  std::unique_ptr<DiskTier> open(const char* name) {
    return std::make_unique<DiskTier>(DiskTierOptions{
        .store = {.folder = folder_.path() / name,
                  .fingerprint = "model",
                  .page_bytes = kPeerPageBytes,
                  .most_bytes = 1 << 20},
        .on_warning = [this](const std::string& line) { warnings_.push_back(line); }});
  }
  static DiskTier::Fill bytes_of(int number) {
    return [number](std::span<std::byte> to) {
      std::ranges::copy(page_of(key_of(number), to.size()), to.begin());
    };
  }
  static void save(DiskTier& tier, int number, bool common) {
    ASSERT_TRUE(tier.save(key_of(number), std::nullopt, bytes_of(number), common));
    ASSERT_TRUE(tier.flush(10s));
  }
  // Page `number`, with the bytes of page `content`.
  static bool receive(DiskTier& tier, int number, int content) {
    const bool taken = tier.receive(key_of(number), std::nullopt, bytes_of(content));
    return tier.flush(10s) && taken;
  }
  static bool has(const DiskTier& tier, int number) {
    const PageKey key = key_of(number);
    return tier.has({&key, 1}).front();
  }
  static std::vector<PageKey> keys(std::initializer_list<int> numbers) {
    std::vector<PageKey> all;
    for (const int number : numbers) all.push_back(key_of(number));
    return all;
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(DiskTierPeersTest, OnlyPagesOfTheCommonNamespaceAreListedTheMostRecentFirst) {
  {
    const auto tier = open("a");
    save(*tier, 1, true);
    save(*tier, 2, false);
    save(*tier, 3, true);
    ASSERT_TRUE(receive(*tier, 4, 4));  // not proven
  }
  const auto tier = open("a");
  std::vector<PageKey> listed;
  for (const DiskRecord& record : tier->common_pages(10)) listed.push_back(record.key);
  EXPECT_EQ(listed, keys({3, 1}));
  EXPECT_EQ(tier->common_pages(1).size(), 1u);
}

TEST_F(DiskTierPeersTest, AReceivedPageIsReadAndProvenOnce) {
  const auto tier = open("a");
  EXPECT_FALSE(tier->may_have_unproven());
  ASSERT_TRUE(receive(*tier, 1, 1));
  EXPECT_EQ(read_pages(*tier, {1}), 1);
  EXPECT_TRUE(tier->wants_proof(keys({7, 1})));
  EXPECT_FALSE(tier->wants_proof(keys({1})));  // not every time
  tier->prove(key_of(1), bytes_of(1));
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(tier->stats().proven, 1u);
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(tier->wants_proof(keys({1})));
  EXPECT_EQ(tier->common_pages(10).size(), 1u);
  EXPECT_FALSE(tier->take_refuted());
}

TEST_F(DiskTierPeersTest, APageThatWaitsToBeWrittenIsUnproven) {
  const auto tier = open("a");
  for (int number = 1; number <= 20; ++number)
    ASSERT_TRUE(tier->receive(key_of(number), std::nullopt, bytes_of(number)));
  EXPECT_TRUE(tier->may_have_unproven());
  EXPECT_TRUE(tier->wants_proof(keys({20})));
}

TEST_F(DiskTierPeersTest, AWrongPageEmptiesTheDiskAndEndsReceiving) {
  const auto tier = open("a");
  save(*tier, 1, true);
  ASSERT_TRUE(receive(*tier, 2, 2));
  ASSERT_TRUE(receive(*tier, 3, 99));
  tier->prove(key_of(3), bytes_of(3));
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(tier->stats().refuted, 1u);
  for (const int number : {1, 2, 3}) EXPECT_FALSE(has(*tier, number));
  EXPECT_FALSE(receive(*tier, 4, 4));
  EXPECT_TRUE(tier->take_refuted());
  EXPECT_FALSE(tier->take_refuted());
  ASSERT_EQ(warnings_.size(), 1u);
  save(*tier, 5, true);  // its own pages go on
  EXPECT_TRUE(has(*tier, 5));
}

TEST_F(DiskTierPeersTest, AReceivedPageIsUnprovenAfterARestart) {
  {
    const auto tier = open("a");
    ASSERT_TRUE(receive(*tier, 1, 1));
  }
  const auto tier = open("a");
  EXPECT_TRUE(tier->may_have_unproven());
  EXPECT_TRUE(tier->wants_proof(keys({1})));
}

}  // namespace
}  // namespace octavo
