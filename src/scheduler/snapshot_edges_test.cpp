#include "scheduler/snapshot_edges.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr TokenId kEnd = 2;

class SnapshotEdges : public testing::Test {
 protected:
  // 8 tokens per page.
  CachePlan plan_ =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8},
                                        StateSpec{.heads = 1, .k_dim = 8, .v_dim = 8}},
                 8);

  std::vector<int> edges(int length, std::vector<int> ends) {
    std::vector<TokenId> prompt(static_cast<size_t>(length), 7);
    for (int end : ends) prompt[static_cast<size_t>(end)] = kEnd;
    return snapshot_edges(prompt, std::vector<TokenId>{kEnd}, plan_);
  }
};

TEST_F(SnapshotEdges, TheLastFullPageBeforeTheEnd) {
  EXPECT_EQ(edges(30, {}), (std::vector<int>{24}));
  EXPECT_EQ(edges(33, {}), (std::vector<int>{32}));
  EXPECT_EQ(edges(32, {}), (std::vector<int>{24}));  // its last row must run
  EXPECT_EQ(edges(8, {}), (std::vector<int>{}));
}

TEST_F(SnapshotEdges, AfterTheFirstAndTheLastTwoMessages) {
  EXPECT_EQ(edges(100, {10, 30, 50, 70, 90}), (std::vector<int>{8, 64, 88, 96}));
}

TEST_F(SnapshotEdges, OnceForEachPage) { EXPECT_EQ(edges(20, {16, 18}), (std::vector<int>{16})); }

TEST_F(SnapshotEdges, NoneWithoutAState) {
  plan_.state.reset();
  EXPECT_EQ(edges(100, {10}), (std::vector<int>{}));
}

}  // namespace
}  // namespace octavo
