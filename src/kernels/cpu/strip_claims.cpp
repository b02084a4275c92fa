#include "kernels/cpu/strip_claims.h"

#include <algorithm>

#include "base/compute_pool.h"

namespace octavo::cpu {
namespace {

// The tile kernels process four strips at a time; a smaller share is divided further, so that other
// threads can take a part of it.
int64_t claim_step(int64_t strips) {
  for (int64_t step : {4, 2}) {
    if (strips >= step) return step;
  }
  return 1;
}

// Adds the claims of thread `thread`.
void add_share(std::span<const StripRun> runs, int threads, int thread,
               std::vector<StripClaim>& claims) {
  const auto first_of = [&](const StripRun& run, int of) {
    return first_of_share(run.strips, threads, of);
  };
  int64_t left = 0;
  for (const StripRun& run : runs) left += first_of(run, thread + 1) - first_of(run, thread);
  const int64_t step = claim_step(left);
  for (size_t i = 0; i < runs.size(); ++i) {
    const int64_t last = first_of(runs[i], thread + 1);
    for (int64_t begin = first_of(runs[i], thread); begin < last;) {
      const int64_t fair = left / 3 / step * step;
      const int64_t size = std::clamp(fair, step, runs[i].longest);
      const int64_t end = std::min(begin + size, last);
      claims.push_back({i, begin, end});
      left -= end - begin;
      begin = end;
    }
  }
}

}  // namespace

StripClaims strip_claims(std::span<const StripRun> runs, int threads) {
  StripClaims result;
  result.firsts.push_back(0);
  for (int thread = 0; thread < threads; ++thread) {
    add_share(runs, threads, thread, result.claims);
    result.firsts.push_back(static_cast<int64_t>(result.claims.size()));
  }
  return result;
}

}  // namespace octavo::cpu
