#include "cache/disk_tier.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <numeric>
#include <random>

#include "base/error.h"
#include "cache/disk_pages_fixture.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPageBytes = 5000;  // two disk blocks
constexpr uint64_t kSlotBytes = 8192 + 128;
constexpr uint64_t kOverhead = 4 * 4096;

class DiskTierTest : public testing::Test {
 protected:
  std::unique_ptr<DiskTier> open(int pages, const std::string& fingerprint = "model") {
    return std::make_unique<DiskTier>(DiskTierOptions{
        .store = {.folder = folder_.path(),
                  .fingerprint = fingerprint,
                  .page_bytes = kPageBytes,
                  .most_bytes = kOverhead + static_cast<uint64_t>(pages) * kSlotBytes},
        .staging_bytes = 16 * kPageBytes,
        .lock_retry = 10ms,
        .write_retry = 50ms,
        .on_warning = [this](const std::string& line) { warnings_.push_back(line); }});
  }
  // Retries until the page is accepted: too many may be waiting.
  static void save(DiskTier& tier, int number, std::optional<int> parent = {}) {
    while (!save_page(tier, number, parent)) std::this_thread::yield();
  }
  static bool has(const DiskTier& tier, int number) {
    const PageKey key = key_of(number);
    return tier.has({&key, 1}).front();
  }
  std::filesystem::path file(const char* ending) const {
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      if (file.path().extension() == ending) return file.path();
    return {};
  }
  void flip_byte(const char* ending, uint64_t offset) const {
    std::fstream stream(file(ending), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const auto byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(DiskTierTest, PagesComeBackAfterARestart) {
  {
    const auto tier = open(20);
    for (int i = 0; i < 10; ++i) save(*tier, i);
    EXPECT_EQ(read_pages(*tier, {0, 9}), 2);  // on disk or waiting to be written
  }
  const auto tier = open(20);
  EXPECT_EQ(tier->stats().pages, 10u);
  EXPECT_EQ(read_pages(*tier, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), 10);
  EXPECT_EQ(read_pages(*tier, {0, 10, 1}), 1);  // nothing after a missing page
  EXPECT_EQ(tier->stats().corrupt, 0u);
}

TEST_F(DiskTierTest, StaysWithinTheLimitAndEvictsBeginningsLast) {
  const auto tier = open(8);
  save(*tier, 100);
  save(*tier, 101, 100);
  for (int i = 0; i < 50; ++i) save(*tier, i, i % 2 == 0 ? std::optional(101) : std::nullopt);
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(tier->stats().pages, 8u);
  EXPECT_EQ(tier->stats().evicted, 44u);
  EXPECT_LE(bytes_on_disk(folder_.path()), kOverhead + 8 * kSlotBytes);
  EXPECT_LE(tier->stats().bytes, kOverhead + 8 * kSlotBytes);
  EXPECT_EQ(read_pages(*tier, {100, 101, 49, 48, 47, 46, 45, 44}), 8);
}

TEST_F(DiskTierTest, ASmallerLimitTruncatesTheFiles) {
  {
    const auto tier = open(20);
    for (int i = 0; i < 20; ++i) save(*tier, i);
  }
  const auto tier = open(5);
  EXPECT_EQ(tier->stats().pages, 5u);
  EXPECT_LE(bytes_on_disk(folder_.path()), kOverhead + 5 * kSlotBytes);
}

TEST_F(DiskTierTest, AFlippedByteDropsThePage) {
  {
    const auto tier = open(20);
    for (int i = 0; i < 4; ++i) save(*tier, i);
  }
  flip_byte(".pages", 8192 + 4999);        // the last byte of slot 1
  flip_byte(".index", 128 + 2 * 128 + 5);  // the entry of slot 2
  const auto tier = open(20);
  EXPECT_EQ(tier->stats().pages, 3u);
  EXPECT_EQ(read_pages(*tier, {0, 1, 3}), 1);
  EXPECT_EQ(tier->stats().corrupt, 1u);
  EXPECT_FALSE(has(*tier, 1));
  save(*tier, 1);
  EXPECT_EQ(read_pages(*tier, {0, 1, 3}), 3);
}

TEST_F(DiskTierTest, PagesOfOtherModelsAreNeverReadAndAreEvicted) {
  open(10, "one")->flush(1s);
  {
    const auto tier = open(10, "one");
    for (int i = 0; i < 6; ++i) save(*tier, i);
  }
  const auto tier = open(10, "two");
  EXPECT_EQ(read_pages(*tier, {0}), 0);
  for (int i = 0; i < 3; ++i) save(*tier, i);
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 5);
  for (int i = 3; i < 10; ++i) save(*tier, i);
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(tier->stats().pages, 10u);
  EXPECT_LE(bytes_on_disk(folder_.path()), kOverhead + 10 * kSlotBytes);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 3);
}

TEST_F(DiskTierTest, ASecondProcessWaitsForTheFolder) {
  auto first = open(20);
  save(*first, 1);
  const auto second = open(20);
  EXPECT_TRUE(second->stats().shut_out);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("another process"), std::string::npos);
  EXPECT_FALSE(save_page(*second, 2));
  EXPECT_FALSE(has(*second, 1));
  first.reset();
  for (int i = 0; i < 1000 && second->stats().shut_out; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(read_pages(*second, {1}), 1);
}

// Simulates a full disk: no byte past a limit can be written.
TEST_F(DiskTierTest, AFullDiskPausesWriting) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 3 * 8192 + 100;
  const auto tier = open(20);
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 4; ++i) save(*tier, i);
  EXPECT_TRUE(tier->flush(10s));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(tier->stats().write_errors, 1u);
  EXPECT_TRUE(tier->stats().writes_off);
  EXPECT_FALSE(warnings_.empty());
  EXPECT_EQ(read_pages(*tier, {0, 1, 2}), 3);
  EXPECT_FALSE(has(*tier, 3));
  save(*tier, 3);  // a while later
  EXPECT_TRUE(tier->flush(10s));
  EXPECT_EQ(read_pages(*tier, {0, 1, 2, 3}), 4);
}

TEST_F(DiskTierTest, ClearRemovesEveryPage) {
  const auto tier = open(20);
  for (int i = 0; i < 10; ++i) save(*tier, i);
  tier->clear();
  ASSERT_TRUE(tier->flush(10s));
  EXPECT_EQ(tier->stats().pages, 0u);
  EXPECT_FALSE(has(*tier, 1));
  save(*tier, 1);
  EXPECT_EQ(read_pages(*tier, {1}), 1);
}

TEST_F(DiskTierTest, RejectsALimitBelowOnePage) {
  EXPECT_THROW(open(0), SetupError);
  const DiskTierOptions nowhere{.store = {.folder = "/proc/nowhere",
                                          .fingerprint = "model",
                                          .page_bytes = kPageBytes,
                                          .most_bytes = 1 << 20}};
  EXPECT_THROW(DiskTier{nowhere}, SetupError);
}

TEST_F(DiskTierTest, RefusesFilesThatAreLinks) {
  open(4).reset();
  const TemporaryFolder outside;
  const std::filesystem::path target = outside.path() / "precious";
  std::ofstream(target) << "bytes";
  for (const char* ending : {".pages", ".index", ".lock"}) {
    const std::filesystem::path planted = file(ending);
    std::filesystem::remove(planted);
    std::filesystem::create_symlink(target, planted);
    EXPECT_THROW(open(4), SetupError) << planted;
    EXPECT_EQ(std::filesystem::file_size(target), 5u) << planted;
    std::filesystem::remove(planted);
    std::filesystem::create_directory(planted);
    EXPECT_THROW(open(4), SetupError) << planted;
    std::filesystem::remove(planted);
    open(4).reset();
  }
}

TEST_F(DiskTierTest, FollowsALinkedFolder) {
  const TemporaryFolder disk;
  std::filesystem::remove_all(folder_.path());
  std::filesystem::create_directory_symlink(disk.path(), folder_.path());
  const auto tier = open(4);
  save(*tier, 1);
  EXPECT_TRUE(tier->flush(1min));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(disk.path()), {}), 3);
  std::filesystem::remove(folder_.path());
}

// Savers and readers on several threads, restarts, flipped bytes: pages read back are correct, and
// the files stay within the limit.
TEST_F(DiskTierTest, HoldsUnderRandomUse) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  uint64_t read = 0;
  for (int round = 0; round < 20; ++round) {
    const int most = draw(2, 40);
    const auto tier = open(most);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, seed = random()] {
        std::mt19937 own(seed);
        for (int i = 0; i < 100; ++i) {
          const int number = static_cast<int>(own() % 60);
          save_page(*tier, number, number > 0 ? std::optional(number - 1) : std::nullopt);
          if (own() % 4 == 0) {
            std::vector<int> wanted(own() % 5 + 1);
            std::iota(wanted.begin(), wanted.end(), number);
            EXPECT_GE(read_pages(*tier, wanted), 0);
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(tier->flush(10s));
    EXPECT_LE(tier->stats().pages, static_cast<uint64_t>(most));
    EXPECT_LE(bytes_on_disk(folder_.path()), kOverhead + static_cast<uint64_t>(most) * kSlotBytes);
    read += tier->stats().read;
    for (int i = draw(0, 3); i > 0; --i) {
      const char* ending = draw(0, 3) == 0 ? ".index" : ".pages";
      flip_byte(ending, static_cast<uint64_t>(draw(
                            0, static_cast<int>(std::filesystem::file_size(file(ending))) - 1)));
    }
  }
  EXPECT_GT(read, 100u);
}

}  // namespace
}  // namespace octavo
