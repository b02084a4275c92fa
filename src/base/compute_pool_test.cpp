#include "base/compute_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace octavo {
namespace {

TEST(ComputePool, EveryIndexIsVisitedOnce) {
  for (int threads : {1, 2, 5}) {
    ComputePool pool(threads);
    for (int64_t count : {0, 1, 7, 1000}) {
      for (int64_t grain : {1, 3, 2000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LE(end - begin, grain);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& n : seen) EXPECT_EQ(n, 1);
      }
    }
  }
}

TEST(ComputePool, AnExceptionReachesTheCallerAndThePoolStaysUsable) {
  ComputePool pool(3);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(100, 1,
                                   [](int64_t begin, int64_t) {
                                     if (begin == 40) throw std::runtime_error("piece 40");
                                   }),
                 std::runtime_error);
    std::atomic<int> done = 0;
    pool.parallel_for(100, 1, [&](int64_t, int64_t) { ++done; });
    EXPECT_EQ(done, 100);
  }
}

TEST(ComputePool, ConcurrentCallersRunOneAfterAnother) {
  ComputePool pool(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.parallel_for(10, 1, [&](int64_t begin, int64_t) { sum += begin; });
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

TEST(ComputePool, ThisProcessMayUseAtLeastOneCore) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace octavo
