#include "kv_events/split_changes.h"

#include <gtest/gtest.h>

namespace octavo::kv_events {
namespace {

Stored block(uint64_t hash, std::optional<uint64_t> parent, bool salted = false) {
  CachedBlock stored{.hash = hash, .parent = parent};
  if (salted) stored.extra = {salt_key("x")};
  return {std::move(stored), CacheMedium::kMemory};
}

TEST(SplitChanges, KeepsBlocksWithExtraKeysApart) {
  const auto parts = split_changes({block(1, {}), block(2, 1), block(3, {}, true), block(4, 3),
                                    Removed{0, 1, CacheMedium::kMemory}, block(5, {}),
                                    block(6, {}, true), block(7, {}, true), block(8, {})});
  std::vector<size_t> sizes;
  for (const auto& part : parts) sizes.push_back(part.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2, 2, 1, 1, 1}));
}

TEST(SplitChanges, WithoutExtraKeysIsOneBatch) {
  EXPECT_EQ(split_changes({block(1, {}), Cleared{}, block(2, {})}).size(), 1u);
  EXPECT_TRUE(split_changes({}).empty());
}

}  // namespace
}  // namespace octavo::kv_events
