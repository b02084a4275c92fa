#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

TEST(PagePool, LeaseReturnsItsPagesOnDestruction) {
  PagePool pool(4);
  pool.try_lease(3).reset();
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(PagePool, AFullPoolReturnsNullopt) {
  PagePool pool(4);
  auto lease = pool.try_lease(3);
  EXPECT_FALSE(pool.try_lease(2).has_value());
  EXPECT_EQ(pool.free_pages(), 1);
}

TEST(PagePool, ASharedPageStaysUntilItsLastLeaseIsDestroyed) {
  PagePool pool(4);
  auto lease = pool.try_lease(2);
  PageLease shared = pool.share(lease->pages().first(1));
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

TEST(PagePool, AKeptPageIsCachedAndTheOldestIsEvictedFirst) {
  PagePool pool(3);
  std::vector<PageId> evicted;
  pool.on_evict([&](PageId page) { evicted.push_back(page); });
  auto lease = pool.try_lease(2);
  const std::vector<PageId> pages(lease->pages().begin(), lease->pages().end());
  for (PageId page : pages) pool.keep(page);
  lease.reset();  // the last page is released first
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_EQ(pool.cached_pages(), 2);
  EXPECT_EQ(pool.state(pages[0]), PageState::kCached);

  auto second = pool.try_lease(2);  // the free one, then the one cached first
  EXPECT_EQ(evicted, std::vector<PageId>{pages[1]});
  PageLease again = pool.share(std::span(pages).first(1));
  EXPECT_EQ(pool.state(pages[0]), PageState::kReferenced);
  EXPECT_FALSE(pool.try_lease(1).has_value());
  again = PageLease();
  pool.forget(pages[0]);
  EXPECT_EQ(pool.state(pages[0]), PageState::kFree);
}

TEST(PagePool, ReleasingTheFrontKeepsTheRest) {
  PagePool pool(4);
  PageLease lease = *pool.try_lease(4);
  lease.release_front(2);
  lease.release_front(1);
  EXPECT_EQ(pool.free_pages(), 2);
  EXPECT_EQ(lease.pages()[1], kNoPage);
  EXPECT_NE(lease.pages()[2], kNoPage);
}

}  // namespace
}  // namespace octavo
