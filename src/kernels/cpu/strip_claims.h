// strip_claims.h (cpu) - how threads divide the strips of one or several products. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace octavo::cpu {

inline constexpr int64_t kFewRows = 32;  // up to this many rows every weight is read once

// The longest useful claim: with many rows, as many strips as a thread keeps in its cache.
constexpr int64_t longest_claim(int64_t rows) { return rows <= kFewRows ? 64 : 8; }

struct StripRun {
  int64_t strips;
  int64_t longest;  // claim
};

// Strips [begin, end) of run `run`, claimed by a thread at once.
struct StripClaim {
  size_t run;
  int64_t begin;
  int64_t end;
};

struct StripClaims {
  std::vector<StripClaim> claims;
  std::vector<int64_t> firsts;  // thread t owns claims [firsts[t], firsts[t + 1])
};

// A thread owns the same share of a run's strips in every step: those of first_of_share, which it
// also packed, so that they are in the memory of its NUMA node. Within a share, long claims come
// first because they read memory best; shorter ones follow so that the threads finish together.
StripClaims strip_claims(std::span<const StripRun> runs, int threads);

}  // namespace octavo::cpu
