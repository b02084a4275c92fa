#include "generation/mask_time.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using Milliseconds = TimeStore::Milliseconds;

TEST(TimeStore, RefillsWithTimeUpToItsCapacity) {
  TimeStore store(Milliseconds(100), 0.5);
  const auto start = TimeStore::Clock::now() + std::chrono::hours(1);
  EXPECT_TRUE(store.take(Milliseconds(100), start));
  EXPECT_FALSE(store.take(Milliseconds(1), start));
  EXPECT_TRUE(store.take(Milliseconds(10), start + std::chrono::milliseconds(40)));
  EXPECT_FALSE(store.take(Milliseconds(11), start + std::chrono::milliseconds(40)));
  EXPECT_FALSE(store.take(Milliseconds(101), start + std::chrono::hours(1)));
}

TEST(MaskTime, EndsARequestWithSlowMasksOnly) {
  const MaskTimeOptions options;
  TimeStore total(options.total_capacity, options.total_refill);
  MaskTime slow(total, options);
  int masks = 0;
  while (masks < 100 && slow.charge(Milliseconds(30))) ++masks;
  EXPECT_GE(masks, 3);
  EXPECT_LE(masks, 8);
  // The total is used up as well, but fast masks continue.
  MaskTime fast(total, options);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(fast.charge(Milliseconds(1)));
}

TEST(MaskTime, ASlowFirstMaskIsAllowed) {
  const MaskTimeOptions options;
  TimeStore total(options.total_capacity, options.total_refill);
  MaskTime request(total, options);
  EXPECT_TRUE(request.charge(Milliseconds(60)));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(request.charge(Milliseconds(0.1)));
}

}  // namespace
}  // namespace octavo
