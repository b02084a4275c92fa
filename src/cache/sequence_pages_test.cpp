#include "cache/sequence_pages.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

CachePlan two_groups() {
  SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
  SoftmaxSpec sliding = full;
  sliding.window = 16;
  return plan_cache(std::vector<CacheSpec>{full, sliding}, 8);
}

TEST(SequencePages, EveryGroupGetsItsOwnPages) {
  const CachePlan plan = two_groups();
  PagePool pool(10);
  SequencePages pages(plan, pool);
  ASSERT_TRUE(pages.grow_to(17));
  EXPECT_EQ(pages.table(0).size(), 3u);
  EXPECT_EQ(pages.table(1).size(), 3u);
  EXPECT_EQ(pool.free_pages(), 4);
  EXPECT_NE(pages.table(0)[0], pages.table(1)[0]);
}

TEST(SequencePages, GrowingPastThePoolTakesNothing) {
  const CachePlan plan = two_groups();
  PagePool pool(5);
  SequencePages pages(plan, pool);
  ASSERT_TRUE(pages.grow_to(16));
  EXPECT_FALSE(pages.grow_to(17));
  EXPECT_EQ(pool.free_pages(), 1);
}

TEST(SequencePages, ShrinkingKeepsThePagesInUse) {
  const CachePlan plan = two_groups();
  PagePool pool(10);
  SequencePages pages(plan, pool);
  ASSERT_TRUE(pages.grow_to(40));
  const PageId first = pages.table(0)[0];
  pages.shrink_to(8);
  EXPECT_EQ(pool.free_pages(), 8);
  EXPECT_EQ(pages.table(0)[0], first);
}

TEST(SequencePages, AWindowReleasesPagesThatNoLaterRowReads) {
  const CachePlan plan = two_groups();  // blocks of 8; the second group's window is 16
  PagePool pool(12);
  SequencePages pages(plan, pool);
  ASSERT_TRUE(pages.grow_to(40));
  pages.release_behind(22);  // row 22 sees 7..22
  EXPECT_NE(pages.table(1)[0], kNoPage);
  pages.release_behind(23);
  EXPECT_EQ(pages.table(1)[0], kNoPage);
  EXPECT_NE(pages.table(1)[1], kNoPage);
  EXPECT_NE(pages.table(0)[0], kNoPage);
  pages.release();
  EXPECT_EQ(pool.free_pages(), 12);
}

}  // namespace
}  // namespace octavo
