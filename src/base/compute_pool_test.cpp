#include "base/compute_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/testing/sanitized.h"
#include "base/testing/slow_tests.h"

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

TEST(ComputePool, SharesAreContiguousAndEqual) {
  for (int threads : {1, 2, 3, 96}) {
    for (int64_t count : {0, 1, 2, 95, 96, 97, 1000}) {
      EXPECT_EQ(first_of_share(count, threads, 0), 0);
      EXPECT_EQ(first_of_share(count, threads, threads), count);
      for (int t = 0; t < threads; ++t) {
        const int64_t size =
            first_of_share(count, threads, t + 1) - first_of_share(count, threads, t);
        EXPECT_GE(size, count / threads);
        EXPECT_LE(size, count / threads + 1);
      }
    }
  }
}

// A piece that waits for all others of its kind can end only if each runs on a thread of its own.
TEST(ComputePool, EveryThreadRunsItsOwnShareFirst) {
  constexpr int kThreads = 12;
  ComputePool pool(kThreads);
  std::mutex mutex;
  std::map<int64_t, std::thread::id> owners;
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> started = 0;
    pool.parallel_for(2 * kThreads, 1, [&](int64_t begin, int64_t) {
      if (begin % 2 == 0) {
        const std::lock_guard lock(mutex);
        const auto [known, is_new] = owners.try_emplace(begin, std::this_thread::get_id());
        EXPECT_EQ(known->second, std::this_thread::get_id()) << "piece " << begin;
        ++started;
      }
      while (started < kThreads) std::this_thread::yield();
    });
  }
  std::set<std::thread::id> distinct;
  for (const auto& [piece, thread] : owners) distinct.insert(thread);
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kThreads));
}

TEST(ComputePool, SharesOfOneThreadAreTakenByOthers) {
  ComputePool pool(2);
  // All pieces belong to one thread, and the first of them waits for the last.
  for (const std::vector<int64_t>& firsts :
       {std::vector<int64_t>{0, 50, 50}, std::vector<int64_t>{0, 0, 50}}) {
    std::atomic<bool> last_ran = false;
    pool.parallel_shares(firsts, [&](int64_t begin, int64_t) {
      while (begin == 0 && !last_ran) std::this_thread::yield();
      if (begin == 49) last_ran = true;
    });
    EXPECT_TRUE(last_ran);
  }
}

TEST(ComputePool, FewerThreadsThanSharesRunAllPieces) {
  ComputePool pool(20);
  std::vector<int64_t> firsts = {0};
  for (int t = 0; t < 20; ++t) firsts.push_back(firsts.back() + t % 3);
  for (int limit : {1, 2, 9, 20, 1 << 20}) {
    pool.limit_threads(limit);
    std::atomic<int64_t> sum = 0;
    pool.parallel_shares(firsts, [&](int64_t begin, int64_t end) { sum += begin * (end - begin); });
    EXPECT_EQ(sum, firsts.back() * (firsts.back() - 1) / 2) << limit;
  }
}

// Helpers that sleep are woken, or the caller does their work.
TEST(ComputePool, WorksAfterAPause) {
  ComputePool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> done = 0;
    pool.parallel_for(7, 1, [&](int64_t, int64_t) { ++done; });
    EXPECT_EQ(done, 7);
  }
}

// Random loops on pools of 1 to 128 threads, with exceptions, limits, pauses and several callers.
class RandomLoops {
 public:
  RandomLoops(ComputePool& pool, uint32_t seed, bool may_limit)
      : pool_(pool), random_(seed), may_limit_(may_limit) {}

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (may_limit_ && below(4) == 0) pool_.limit_threads(1 + below(pool_.threads() + 2));
      below(3) == 0 ? shares() : loop();
      if (below(40) == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

  void loop() {
    const int64_t count = below(8) == 0 ? below(3) : below(3000);
    const int64_t grain = 1 + (below(2) == 0 ? below(4) : below(600));
    const int64_t bad = below(5) == 0 && count > 0 ? below(static_cast<int>(count)) : -1;
    std::vector<int> seen(static_cast<size_t>(count));  // not atomic: each is visited once
    const auto run = [&] {
      pool_.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        if (begin <= bad && bad < end) throw std::runtime_error("a bad piece");
      });
    };
    if (bad >= 0) {
      EXPECT_THROW(run(), std::runtime_error);
      for (int n : seen) ASSERT_LE(n, 1);
    } else {
      run();
      for (int n : seen) ASSERT_EQ(n, 1);
    }
  }

  void shares() {
    std::vector<int64_t> firsts = {0};
    const int count = 1 + below(pool_.threads());
    for (int i = 0; i < count; ++i) firsts.push_back(firsts.back() + below(1 + below(20)));
    std::vector<int> seen(static_cast<size_t>(firsts.back()));
    pool_.parallel_shares(firsts, [&](int64_t begin, int64_t end) {
      ASSERT_EQ(end, begin + 1);
      ++seen[static_cast<size_t>(begin)];
    });
    for (int n : seen) ASSERT_EQ(n, 1);
  }

  ComputePool& pool_;
  std::mt19937 random_;
  bool may_limit_;
};

TEST(ComputePool, RandomLoopsOnUpTo128Threads) {
  const int rounds = slow_tests() ? 2000 : kSanitized ? 20 : 60;
  for (int threads : {1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 128}) {
    ComputePool pool(threads);
    RandomLoops(pool, static_cast<uint32_t>(threads), true).run(rounds);
    pool.limit_threads(1 << 20);
    std::vector<std::thread> callers;
    for (uint32_t seed = 0; seed < 3; ++seed)
      callers.emplace_back([&, seed] { RandomLoops(pool, seed, false).run(rounds / 4); });
    for (auto& caller : callers) caller.join();
  }
}

}  // namespace
}  // namespace octavo
