#include "bench/pool_cost.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/compute_pool.h"

namespace octavo::bench {
namespace {

constexpr int kLoops = 2000;           // of a pass
constexpr int64_t kManyPieces = 4096;  // per thread
constexpr int kWorkRounds = 2000;      // of a piece: long enough that every thread takes part

// Stores results so that the optimizer does not remove the work.
std::atomic<uint64_t> work_sink;

// A chain of multiplications, which takes the same time on every core.
void work_for(int rounds) {
  uint64_t value = 1;
  for (int i = 0; i < rounds; ++i) value = value * 6364136223846793005U + 1442695040888963407U;
  if (value == 0) work_sink = value;
}

double seconds_per_loop(ComputePool& pool, int64_t pieces, int rounds, int loops) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < loops; ++i)
    pool.parallel_for(pieces, 1, [rounds](int64_t, int64_t) { work_for(rounds); });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / loops;
}

PoolCost cost_of_pool(int threads, int passes) {
  ComputePool alone(1);
  ComputePool pool(threads);
  std::vector<double> loop;
  std::vector<double> claim;
  for (int pass = 0; pass < passes; ++pass) {
    const double piece = seconds_per_loop(alone, 1, kWorkRounds, kLoops);
    loop.push_back(seconds_per_loop(pool, threads, kWorkRounds, kLoops) - piece);
    claim.push_back(seconds_per_loop(pool, kManyPieces * threads, 0, kLoops / 20) / kManyPieces);
  }
  std::ranges::sort(loop);
  std::ranges::sort(claim);
  return {threads, loop[loop.size() / 2], claim[claim.size() / 2]};
}

}  // namespace

std::vector<PoolCost> measure_pool(int most, int passes) {
  std::vector<PoolCost> costs;
  for (int threads = 1; threads < most; threads *= 2)
    costs.push_back(cost_of_pool(threads, passes));
  costs.push_back(cost_of_pool(most, passes));
  return costs;
}

}  // namespace octavo::bench
