#include "kernels/cpu/strip_claims.h"

#include <gtest/gtest.h>

#include "base/compute_pool.h"

namespace octavo::cpu {
namespace {

TEST(StripClaims, EveryThreadOwnsTheStripsThatItPacked) {
  const std::vector<StripRun> runs = {{36, 64}, {12, 64}, {12, 8}, {1, 64}, {3072, 64}};
  for (int threads : {1, 2, 3, 8, 96, 192}) {
    const auto [claims, firsts] = strip_claims(runs, threads);
    ASSERT_EQ(firsts.size(), static_cast<size_t>(threads) + 1);
    EXPECT_EQ(firsts.back(), static_cast<int64_t>(claims.size()));
    std::vector<int64_t> next(runs.size());  // strip of each run
    for (int t = 0; t < threads; ++t) {
      for (int64_t i = firsts[static_cast<size_t>(t)]; i < firsts[static_cast<size_t>(t) + 1];
           ++i) {
        const StripClaim& claim = claims[static_cast<size_t>(i)];
        EXPECT_EQ(claim.begin, next[claim.run]);
        EXPECT_LT(claim.begin, claim.end);
        EXPECT_LE(claim.end - claim.begin, runs[claim.run].longest);
        next[claim.run] = claim.end;
      }
      for (size_t r = 0; r < runs.size(); ++r)
        EXPECT_EQ(next[r], first_of_share(runs[r].strips, threads, t + 1)) << "run " << r;
    }
  }
}

TEST(StripClaims, LongClaimsComeFirst) {
  const std::vector<StripRun> runs = {{240, 64}};
  const auto [claims, firsts] = strip_claims(runs, 2);
  EXPECT_EQ(claims.front().end, 40);
  EXPECT_EQ(claims[static_cast<size_t>(firsts[1]) - 1].end, 120);
  for (size_t i = 1; i < static_cast<size_t>(firsts[1]); ++i)
    EXPECT_LE(claims[i].end - claims[i].begin, claims[i - 1].end - claims[i - 1].begin);
}

}  // namespace
}  // namespace octavo::cpu
