#include "cache/state_lease.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using Pages = std::vector<PageId>;

Pages pages_of(std::span<const PageId> span) { return {span.begin(), span.end()}; }

TEST(StateLease, BeginsWithNoSourceAndThenWritesInPlace) {
  PagePool pool(4);
  StateLease state(pool, 2);
  EXPECT_EQ(state.missing(), 2);
  state.grow();
  const Pages first = state.table();
  EXPECT_EQ(Pages(first.begin(), first.begin() + 2), (Pages{kNoPage, kNoPage}));
  const Pages own(first.begin() + 2, first.end());
  state.advance(0);
  EXPECT_EQ(state.missing(), 0);
  EXPECT_EQ(state.table(), (Pages{own[0], own[1], own[0], own[1]}));
  state.advance(8);
  EXPECT_EQ(pool.referenced_pages(), 2);
}

TEST(StateLease, AKeptStateIsReadButNotWritten) {
  PagePool pool(6);
  StateLease state(pool, 2);
  state.grow();
  state.advance(0);
  const Pages kept = pages_of(state.keep());
  EXPECT_EQ(state.missing(), 2);
  state.grow();
  const Pages table = state.table();
  EXPECT_EQ(Pages(table.begin(), table.begin() + 2), kept);
  EXPECT_NE(table[2], kept[0]);
  state.advance(8);
  EXPECT_EQ(pool.references(kept[0]), 1);  // the step that reads it may still run
  state.release_behind(8);
  EXPECT_EQ(pool.references(kept[0]), 1);
  state.release_behind(9);
  EXPECT_EQ(pool.references(kept[0]), 0);
  EXPECT_EQ(pool.referenced_pages(), 2);
}

TEST(StateLease, StartsWithASharedSnapshot) {
  PagePool pool(6);
  StateLease first(pool, 2);
  first.grow();
  first.advance(0);
  StateLease second(pool, 2);
  second.adopt(first.keep());
  EXPECT_EQ(second.missing(), 2);
  second.grow();
  second.advance(8);
  EXPECT_NE(second.current()[0], first.current()[0]);
  EXPECT_EQ(pool.references(first.current()[0]), 2);
  second.release();
  EXPECT_EQ(pool.references(first.current()[0]), 1);
}

TEST(StateLease, ReportsPagesWrittenFromAPosition) {
  PagePool pool(8);
  StateLease state(pool, 1);
  state.grow();
  state.advance(0);  // writes a
  const PageId a = state.keep()[0];
  state.grow();
  state.advance(8);  // reads a, writes b
  const PageId b = state.keep()[0];
  state.grow();
  state.advance(16);  // reads b, writes c
  std::vector<PageId> written;
  for (const auto copy : state.written_from(8)) written.push_back(copy[0]);
  EXPECT_EQ(written, (Pages{state.current()[0], b}));
  EXPECT_NE(a, b);
}

TEST(StateLease, DraftsHaveStatesOfTheirOwnUntilTheyAreVerified) {
  PagePool pool(10);
  StateLease state(pool, 2);
  state.grow();
  state.advance(0);
  EXPECT_EQ(state.missing(3), 6);
  state.grow(3);
  const Pages table = state.table();
  ASSERT_EQ(table.size(), 10u);
  EXPECT_EQ(Pages(table.begin(), table.begin() + 2), Pages(table.begin() + 2, table.begin() + 4));
  state.advance(8);
  EXPECT_EQ(pages_of(state.current()), Pages(table.begin() + 2, table.begin() + 4));
  state.accept_draft(9);
  state.accept_draft(10);
  state.drop_drafts();
  EXPECT_EQ(pages_of(state.current()), Pages(table.begin() + 6, table.begin() + 8));
  state.release_behind(11);
  EXPECT_EQ(pool.referenced_pages(), 2);
  EXPECT_EQ(state.missing(), 0);
  state.grow(1);
  state.release();
  EXPECT_EQ(pool.referenced_pages(), 0);
}

TEST(StateLease, AKeptStateIsNotWrittenByAStepWithDrafts) {
  PagePool pool(3);
  StateLease state(pool, 1);
  state.grow();
  state.advance(0);
  const PageId kept = state.keep()[0];
  EXPECT_EQ(state.missing(1), 2);
  state.grow(1);
  const Pages table = state.table();
  EXPECT_EQ(table[0], kept);
  EXPECT_NE(table[1], kept);
  state.advance(8);
  state.drop_drafts();
  EXPECT_EQ(state.current()[0], table[1]);
  state.release_behind(9);
  EXPECT_EQ(pool.referenced_pages(), 1);
}

TEST(StateLease, WithoutAStateNoPagesAreNeeded) {
  PagePool pool(1);
  StateLease state(pool, 0);
  EXPECT_EQ(state.missing(), 0);
  state.grow();
  EXPECT_TRUE(state.table().empty());
  state.advance(0);
  state.grow(3);
  EXPECT_TRUE(state.table().empty());
  state.accept_draft(1);
  state.drop_drafts();
  EXPECT_EQ(pool.referenced_pages(), 0);
}

}  // namespace
}  // namespace octavo
