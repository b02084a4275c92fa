#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace octavo {
namespace {

TEST(PagePool, LeaseReturnsItsPagesWhenItDies) {
  PagePool pool(4);
  pool.try_lease(3).reset();
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(PagePool, FullIsAnAnswerAndTakesNothing) {
  PagePool pool(4);
  auto lease = pool.try_lease(3);
  EXPECT_FALSE(pool.try_lease(2).has_value());
  EXPECT_EQ(pool.free_pages(), 1);
}

TEST(PagePool, ASharedPageStaysUntilTheLastLeaseDies) {
  PagePool pool(4);
  auto lease = pool.try_lease(2);
  PageLease shared = lease->share(1);
  const PageId page = lease->pages()[0];
  EXPECT_EQ(pool.references(page), 2);
  lease.reset();
  EXPECT_EQ(pool.references(page), 1);
  EXPECT_EQ(pool.free_pages(), 3);
  shared = PageLease();
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(PagePool, AppendAndTruncateKeepTheOrder) {
  PagePool pool(8);
  PageLease lease = *pool.try_lease(2);
  const std::vector<PageId> first(lease.pages().begin(), lease.pages().end());
  lease.append(*pool.try_lease(3));
  EXPECT_EQ(lease.pages().size(), 5u);
  lease.truncate(2);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), lease.pages().begin()));
  EXPECT_EQ(pool.free_pages(), 6);
}

// After every random operation: each page is free or referenced, and its count is the number of
// entries that point at it.
TEST(PagePool, RandomOperationsKeepTheInvariants) {
  std::mt19937 random(1);
  PagePool pool(64);
  std::vector<PageLease> leases;
  for (int step = 0; step < 200000; ++step) {
    const auto pick = leases.empty() ? 0 : random() % leases.size();
    switch (random() % 5) {
      case 0:
        if (auto lease = pool.try_lease(static_cast<int>(random() % 9)))
          leases.push_back(std::move(*lease));
        break;
      case 1:
        if (!leases.empty()) leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(pick));
        break;
      case 2:
        if (!leases.empty())
          leases.push_back(leases[pick].share(random() % (leases[pick].pages().size() + 1)));
        break;
      case 3:
        if (!leases.empty()) leases[pick].truncate(random() % (leases[pick].pages().size() + 1));
        break;
      case 4:
        if (!leases.empty()) {
          if (auto more = pool.try_lease(1)) leases[pick].append(std::move(*more));
        }
        break;
    }
    std::map<PageId, int> expected;
    for (const auto& lease : leases) {
      for (PageId page : lease.pages()) ++expected[page];
    }
    ASSERT_EQ(pool.free_pages() + static_cast<int>(expected.size()), pool.page_count());
    if (step % 97 == 0) {
      for (PageId page = 0; page < pool.page_count(); ++page) {
        ASSERT_EQ(pool.references(page), expected.contains(page) ? expected[page] : 0);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
