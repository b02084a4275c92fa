#include "kernels/cpu/strip_claims.h"

#include <algorithm>

namespace octavo::cpu {
namespace {

// The tile kernels process four strips at a time; with too few strips for all threads, smaller
// claims are better than idle threads.
int64_t claim_step(int64_t strips, int threads) {
  for (int64_t step : {4, 2}) {
    if (strips >= step * threads) return step;
  }
  return 1;
}

}  // namespace

std::vector<StripClaim> strip_claims(std::span<const StripRun> runs, int threads) {
  int64_t left = 0;
  for (const StripRun& run : runs) left += run.strips;
  const int64_t step = claim_step(left, threads);
  std::vector<StripClaim> claims;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (int64_t begin = 0; begin < runs[i].strips;) {
      const int64_t fair = left / (int64_t{threads} * 3) / step * step;
      const int64_t size = std::clamp(fair, step, runs[i].longest);
      const int64_t end = std::min(begin + size, runs[i].strips);
      claims.push_back({i, begin, end});
      left -= end - begin;
      begin = end;
    }
  }
  return claims;
}

}  // namespace octavo::cpu
